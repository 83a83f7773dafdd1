/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * usage: munge_twice SOCKET
 * Has the munged at SOCKET make a credential, and read it twice; prints what it
 * says each time. The second reader may be anybody who has seen the credential.
 */
#include <stdio.h>
#include <string.h>

#include "secure/munge.h"

/* Prints the groups that the user has beside that of this process. */
static void say_groups(const struct munge_answer *a)
{
	const char *text = a->groups;

	printf("groups:");
	for (; *text; text += strlen(text) + 1)
		if (!strncmp(text, "gid=", 4))
			printf(" %s", text + 4);
	printf("\n");
}

static void say(const char *what, const struct munge_answer *a)
{
	printf("%s: %s %s\n", what, a->rc ? a->why : "good", a->user);
}

int main(int argc, char **argv)
{
	struct munge_question q = { .what = MUNGE_MAKE };
	struct munge_answer made = { 0 };

	if (argc != 2)
		return 2;
	memset(&q.payload, 7, sizeof(q.payload));
	munge_real()(argv[1], &q, &made);
	say("made", &made);
	q.what = MUNGE_READ;
	text_copy(q.credential, sizeof(q.credential), made.credential);
	for (int i = 1; i <= 2; i++) {
		char what[16];
		struct munge_answer a = { 0 };

		munge_real()(argv[1], &q, &a);
		snprintf(what, sizeof(what), "read %d", i);
		say(what, &a);
		if (!a.rc)
			say_groups(&a);
		if (!a.rc && (a.carried != sizeof(a.payload) ||
			      memcmp(&a.payload, &q.payload, a.carried) != 0))
			return 1;
	}
	return made.rc != 0;
}

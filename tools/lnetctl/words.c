/* SPDX-License-Identifier: BSD-3-Clause */
#include "words.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Unquotes the word at *@from into *@to, and sets both behind it. */
static int take_word(char **from, char **to)
{
	char *in = *from, *out = *to, quote = 0;

	for (; *in && (quote || !isspace((unsigned char)*in)); in++) {
		if (quote && *in == quote)
			quote = 0;
		else if (!quote && (*in == '"' || *in == '\''))
			quote = *in;
		else if (*in == '\\' && quote != '\'' && in[1])
			*out++ = *++in;
		else
			*out++ = *in;
	}
	*from = *in ? in + 1 : in;
	*to = out;
	return quote ? -EINVAL : 0;
}

int words_split(char *line, char ***words_p)
{
	/* Words are one character at least, and a blank each. */
	char **words = calloc(strlen(line) / 2 + 2, sizeof(*words));
	char *in = line, *out = line;
	int n = 0, rc;

	if (!words)
		return -ENOMEM;
	for (;;) {
		while (isspace((unsigned char)*in))
			in++;
		if (!*in || *in == '#')
			break;
		words[n++] = out;
		rc = take_word(&in, &out);
		if (rc) {
			free(words);
			return rc;
		}
		/* @out never overtakes @in, which is behind a blank or the end,
		 * where nothing more is read. */
		*out++ = 0;
	}
	*words_p = words;
	return n;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A name server on 127.0.0.1 that answers as the test wants. The resolver of
 * this program asks no other one: ares_init_options() is wrapped.
 */
#ifndef TESTS_UNIT_NAMES_NAME_SERVER_H
#define TESTS_UNIT_NAMES_NAME_SERVER_H

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>

#define ANSWER_MAX 4096 /* bytes of an answer, and room for a question */

enum dns_type {
	DNS_A = 1,
	DNS_CNAME = 5,
	DNS_TXT = 16,
	DNS_AAAA = 28,
	DNS_SRV = 33,
};
enum dns_class { DNS_IN = 1, DNS_CHAOS = 3 };

/* Makes the answer to the question of @n bytes in @m, in its place. Returns the
 * answer's length; 0: there is none. */
typedef size_t (*name_server_fn)(unsigned char *m, size_t n);

struct name_server {
	int socket;
	struct sockaddr_in address;
	/* ms until the resolver asks again: a minute, unless the test sets it
	 * before the first question */
	int timeout;
};

extern struct name_server name_server;

void name_server_begin(void);
/* Answers the questions that there are, or come within 10 ms. */
void name_server_serve(name_server_fn answer);
void name_server_end(void);

/* The text of the question's name: "www.example". Returns @text. */
const char *question_name(const unsigned char *m, char text[256]);
/* The length of the question with its header, which is where answers begin. */
size_t question_end(const unsigned char *m);
enum dns_type question_type(const unsigned char *m);

#endif

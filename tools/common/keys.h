/* SPDX-License-Identifier: BSD-3-Clause */
/* The keys of a program that makes or serves calls: files as ulnet-keys(8)
 * makes them. */
#ifndef TOOLS_KEYS_H
#define TOOLS_KEYS_H

#include <stdatomic.h>

#include "option.h"
#include "program.h"

struct ulrpc_keys;

#define KEYS_WHY 512 /* bytes of a text that says why keys cannot be used */

struct keys_options {
	char *folder; /* --keys: the folder of the files; NULL: no keys */
	/* --as: the name whose certificate in the folder is used; NULL: the
	 * cluster's key is used */
	const char *name;
	/* --munge: as a server, take users by MUNGE; as a client, show the user
	 * by MUNGE */
	bool munge_take, munge_show;
	/* --munge-socket: the path; NULL: libmunge's default */
	const char *munge_socket;
	unsigned int flavour; /* --flavour: enum ulrpc_flavour */
	/* Keys with a list of revoked certificates have been read. From then
	 * on, keys without such a list are refused: perhaps the file is just
	 * being replaced. */
	atomic_bool revoked;
};

extern const struct option_row keys_rows[];
/* Frees what reading the options has allocated. */
void keys_options_free(struct keys_options *o);
/* Rows of options for keys and flavour, for programs that make or serve calls.
 */
extern const struct option_row flavour_rows[];
/* Rows of options for MUNGE: for a program that serves calls, and for one that
 * makes them. */
extern const struct option_row munge_take_rows[], munge_show_rows[];
/* Checks that the options go together. Returns 0, or, after a message, the exit
 * status. */
int keys_check(const struct keys_options *o, const char *who);
/* Sets *@keys_p to the keys, a reference that the caller gives back with
 * ulrpc_keys_put(); NULL: the options name no keys. Returns 0, or -errno after
 * a message. */
int keys_read(struct keys_options *o, const struct say *say,
	      struct ulrpc_keys **keys_p);
/* Reads the keys again, as keys_read(). Returns 0, or -errno, with a sentence
 * in @why. */
int keys_again(struct keys_options *o, struct ulrpc_keys **keys_p,
	       char why[KEYS_WHY]);

#endif

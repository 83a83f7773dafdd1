/* SPDX-License-Identifier: BSD-3-Clause */
/* Shows and checks files with keys and certificates. Functions return 0, or the
 * exit status after a message on stderr. */
#ifndef TOOLS_ULNET_KEYS_SHOW_H
#define TOOLS_ULNET_KEYS_SHOW_H

/* Prints what is in the file @path: certificates, lists of what was revoked,
 * names of a cluster's keys. No key is printed, and one that others can read is
 * refused. */
int show_file(const char *who, const char *path);
/* Could the node @name use its files in @folder? Says until when, and for whom
 * it may speak. */
int check_node(const char *who, const char *folder, const char *name);
/* Is @text a list of NIDs? Returns 0 or -EINVAL. */
int nids_check(const char *text);

#endif

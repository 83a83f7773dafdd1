/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which way messages go, and why: the request "path show".
 */
#ifndef CONFIG_PATH_H
#define CONFIG_PATH_H

struct request;

/* The keys of its arguments; ends with NULL. */
extern const char *const path_keys[];

/* Carries the request out. */
void path_show(struct request *r);

#endif

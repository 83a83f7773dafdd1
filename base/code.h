/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of functions, for people who look for one in their program. */
#ifndef BASE_CODE_H
#define BASE_CODE_H

typedef void (*code_fn)(void);

#define CODE_NAME 192 /* bytes */

/* "on_put, /usr/bin/depot+0x2f10": its symbol, if the program shows it, and a
 * place for addr2line(1). Returns @name. Allocates nothing; any thread. */
const char *code_name(code_fn fn, char name[CODE_NAME]);

#endif

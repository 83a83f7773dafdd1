/* SPDX-License-Identifier: BSD-3-Clause */
/* Whole files: read, and written so that a failure leaves the old one. */
#ifndef TOOLS_FILE_H
#define TOOLS_FILE_H

#include <stddef.h>

#define FILE_TEXT_MAX (4u << 20) /* bytes; much more than any configuration */

/*
 * Reads @path, "-" is stdin, as text. *@text_p, ended by a 0, is to be freed.
 * Says on stderr, after @who and with the file's name, what is wrong: not to be
 * read, above FILE_TEXT_MAX (-EFBIG), no text (-EILSEQ: bytes of 0).
 */
int file_read(const char *who, const char *path, char **text_p);

/*
 * Puts @text into @path. A file is replaced when all is written, keeping its
 * mode; what is no file (a device, a pipe) is written to. Says on stderr what
 * is wrong.
 */
int file_write(const char *who, const char *path, const char *text);

#endif

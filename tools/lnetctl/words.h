/* SPDX-License-Identifier: BSD-3-Clause */
/* A line as the words of a command, as a shell would cut it. */
#ifndef TOOLS_WORDS_H
#define TOOLS_WORDS_H

/*
 * Cuts @line, which it changes, at blanks; text in '' or "" is one word, and a
 * backslash takes what is special from the next character (but in ''). A # at
 * the beginning of a word ends the line. *@words_p: to be freed, its words are
 * in @line; ends with NULL. Returns how many; -EINVAL: a quote is not closed;
 * -ENOMEM.
 */
int words_split(char *line, char ***words_p);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Configuration files: lnet.conf(5).
 */
#ifndef CONFIG_IMPORT_H
#define CONFIG_IMPORT_H

#include "config/request.h"

enum import_mode { IMPORT_ADD, IMPORT_DEL, IMPORT_SHOW, IMPORT_EXEC };

/*
 * Does with the file @text what @mode says. Takes the control's lock for all
 * modes but IMPORT_EXEC, unless IMPORT_LOCKED says that the caller has it. If
 * it fails the node is as it was before; with IMPORT_IGNORE_ERRORS each item is
 * done or not done by itself, and the answer has an error for each that fails.
 */
enum import_flag { IMPORT_LOCKED = 1, IMPORT_IGNORE_ERRORS = 2 };
int import_text(struct request *r, const char *text, enum import_mode mode,
		unsigned int flags);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Configuration files: lnet.conf(5).
 */
#ifndef CONFIG_IMPORT_H
#define CONFIG_IMPORT_H

#include "config/request.h"

enum import_mode { IMPORT_ADD, IMPORT_DEL, IMPORT_SHOW, IMPORT_EXEC };

/*
 * Does with the file @text what @mode says. Without the control's lock, which
 * it takes for all but IMPORT_EXEC; with @locked the caller has it. The node is
 * as it was when it fails.
 */
int import_text(struct request *r, const char *text, enum import_mode mode,
		bool locked);

#endif

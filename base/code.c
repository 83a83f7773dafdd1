/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/code.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>

const char *code_name(code_fn fn, char name[CODE_NAME])
{
	uintptr_t at = (uintptr_t)fn;
	Dl_info info;

	if (!dladdr((void *)at, &info) || !info.dli_fname)
		snprintf(name, CODE_NAME, "at 0x%" PRIxPTR, at);
	else
		snprintf(name, CODE_NAME, "%s%s%s+0x%" PRIxPTR,
			 info.dli_sname ? info.dli_sname : "",
			 info.dli_sname ? ", " : "", info.dli_fname,
			 at - (uintptr_t)info.dli_fbase);
	return name;
}

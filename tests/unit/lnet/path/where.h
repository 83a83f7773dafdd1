/* SPDX-License-Identifier: BSD-3-Clause */
/* Asks path_select() where a message goes, and asserts the answer. */
#ifndef TESTS_PATH_WHERE_H
#define TESTS_PATH_WHERE_H

#include "path_rig.h"

#include "lnet/path/select.h"

/* Selects the path of a message from @src (NULL: any) to @dst. Returns what
 * path_select() returns. */
static inline int where(struct path_rig *rig, const char *src, const char *dst,
			unsigned int flags, const struct failed_paths *failed,
			struct path *path)
{
	struct ulnet_nid from =
		src ? rig_nid(src) : (struct ulnet_nid)LNET_NID_ANY;
	struct ulnet_nid to = rig_nid(dst);
	struct path_request request = {
		.src = &from, .dst = &to, .failed = failed, .flags = flags
	};

	return path_select(rig->cpt, &request, path, NULL);
}

static inline void goes(struct path_rig *rig, const char *src, const char *dst,
			const char *want)
{
	struct path path;
	char text[PATH_TEXT_SIZE];

	cr_assert_eq(where(rig, src, dst, 0, NULL, &path), 0);
	cr_assert_str_eq(rig_path_text(&path, text, sizeof(text)), want);
	cr_assert_null(path.route);
}

static inline void fails(struct path_rig *rig, const char *src, const char *dst,
			 int rc)
{
	struct path path;

	cr_assert_eq(where(rig, src, dst, 0, NULL, &path), rc);
}

#endif

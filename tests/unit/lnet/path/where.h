/* SPDX-License-Identifier: BSD-3-Clause */
/* Where a message goes, asked of path_select() and asserted. */
#ifndef TESTS_PATH_WHERE_H
#define TESTS_PATH_WHERE_H

#include "path_rig.h"

#include "lnet/path/select.h"

/* Where a message from @src (NULL: any) to @dst goes. */
static inline int where(struct path_rig *rig, const char *src, const char *dst,
			unsigned int flags, const struct paths_tried *tried,
			struct path *path)
{
	struct ulnet_nid from =
		src ? rig_nid(src) : (struct ulnet_nid)LNET_NID_ANY;
	struct ulnet_nid to = rig_nid(dst);
	struct path_want want = {
		.src = &from, .dst = &to, .tried = tried, .flags = flags
	};

	return path_select(rig->cpt, &want, path);
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

/* Two NIs on tcp, one on tcp1. A multi-rail peer on tcp (two), tcp1 and tcp2,
 * one that is not, and one far away. */
static inline void rig_usual(struct path_rig *rig)
{
	rig_init(rig);
	rig_ni(rig, "10.0.0.1@tcp");
	rig_ni(rig, "10.0.1.1@tcp");
	rig_ni(rig, "10.1.0.1@tcp1");
	rig_peer(rig, "10.0.0.2@tcp 10.0.1.2@tcp 10.1.0.2@tcp1 10.2.0.2@tcp2");
	rig_peer(rig, "10.0.0.3@tcp");
	rig_peer(rig, "10.2.0.4@tcp2 10.2.1.4@tcp2");
	rig_peer(rig, "10.2.0.5@tcp2");
}

static inline void set_up(struct lnet_ni *ni, bool up)
{
	atomic_store(&ni->up, up);
}

#endif

#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A file system without room: what was there stays, nothing half-made is left,
# and the message names the file.
if [ "${1-}" != inside ]; then
	apart=(unshare --mount)
	[ "$(id -u)" = 0 ] || apart+=(--map-root-user)
	"${apart[@]}" true 2>/dev/null && exec "${apart[@]}" bash "$0" inside
	echo "may not make a mount namespace"
	exit 77
fi
. "${srcdir:-.}/tests/tools/lib.sh" || exit

full=$dir/full
mkdir "$full"
# Three pages and three files (the first one is the root).
mount -t tmpfs -o size=12k,nr_inodes=5 tmpfs "$full" 2>/dev/null ||
	skip "may not mount a tmpfs"
trap 'umount "$full"; clean_up' EXIT

need_lnetd a
echo "old contents" >"$full/conf"
head -c 100000 /dev/zero >"$full/filler" 2>/dev/null
expect "it is full" test "$(stat -f -c %f "$full")" = 0
ctl 228 export "$full/conf"
has err "^lnetctl: $full/conf: No space left on device"
silent out
expect "the old file stays" grep -qx "old contents" "$full/conf"
expect "nothing half-made" test "$(ls "$full" | tr '\n' ' ')" = "conf filler "
ctl 228 export "$full/new"
expect "nothing half-made" test "$(ls "$full" | tr '\n' ' ')" = "conf filler "
run 1 "$lnetd" --foreground --socket "$dir/b" --pidfile "$full/pid"
has err "^lnetd: --pidfile $full/pid: No space left on device"
expect "no pid file" test ! -e "$full/pid"
run 1 "$lnetd" --socket "$dir/b" --pidfile "$full/pid"
has err "^lnetd: --pidfile $full/pid: No space left on device"

# No more files, either.
touch "$full/a" "$full/b" 2>/dev/null
run 1 "$lnetd" --foreground --socket "$full/sock"
has err "^lnetd: socket $full/sock: No space left on device"
ctl 228 export "$full/new"
has err "^lnetctl: $full/new: No space left on device"

rm "$full/filler"
ctl 0 export "$full/conf"
expect "the new file" grep -q "^global:" "$full/conf"
expect "nothing half-made" \
	test "$(cd "$full" && ls conf* | tr '\n' ' ')" = "conf "
finish

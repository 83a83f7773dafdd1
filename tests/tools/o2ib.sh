#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A net of type o2ib on a machine without RDMA: whoever adds it is told what is
# missing, and nothing is left of it.
. "${srcdir:-.}/tests/tools/lib.sh" || exit

if [ -n "$(ls -A /sys/class/infiniband 2>/dev/null)" ]; then
	skip "this machine has RDMA devices"
fi

# In place of "no such device", which says nothing about where to look.
missing='no RDMA device|built without rdma-core'

need_lnetd a
"$lnetctl" export --backup >"$dir/before" || complain "export fails"

ctl 156 net add --net o2ib --if lo
silent out
has err "cannot add network o2ib\(lo\): .*($missing)"
run 156 "$lnetctl" net add --nid 127.0.0.1@o2ib
has err "cannot add network 127.0.0.1@o2ib: .*($missing)"
printf 'net:\n- net type: o2ib\n  local NI(s):\n  - interfaces: {0: lo}\n' \
	>"$dir/file"
run 156 "$lnetctl" import "$dir/file"
has err "cannot add network o2ib\(lo\): .*($missing)"

# What is wrong with the interface itself is said as for other nets.
ctl 156 net add --net o2ib --if no-such-interface
has err 'cannot add network o2ib\(no-such-interface\): no such interface'

"$lnetctl" export --backup >"$dir/after" || complain "export fails"
expect "nothing is left" cmp -s "$dir/before" "$dir/after"

run 1 "$lnetd" --foreground --socket "$dir/other" --net 'o2ib(lo)'
has err "o2ib\(lo\): .*($missing)"

finish

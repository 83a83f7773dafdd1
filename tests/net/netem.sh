#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What rails.sh does, on rails that are far away, and that lose, delay and reorder
# frames. Few kernels that tests run on have netem; ./check --long has a virtual
# machine with one that does: tests/vm.
. "${srcdir:-.}/tests/net/hosts.sh" || exit
hosts_enter bash "$0" "$@" || exit 77
. "${srcdir:-.}/tests/tools/lib.sh" || exit
. "${srcdir:-.}/tests/net/harm.sh" || exit

# disturb HOST RAIL NETEM...
disturb() {
	on "$1" tc qdisc add dev "eth$2" root netem "${@:3}"
}

disturb server 0 delay 5ms 2ms loss 1% reorder 5% 2>"$dir/err" ||
	skip "no netem: $(head -n 1 "$dir/err")"
disturb server 1 delay 2ms 1ms loss 2% reorder 5%
disturb client 0 loss 1% duplicate 1%
disturb client 1 delay 2ms loss 1%
some=$((128 << 10)) much=$((1 << 20))

serve tcp tcp
all_harms "calls" half --inflight 64 --size 1000
all_harms "bulk read" half --inflight 4 --bulk-read 100k
finish

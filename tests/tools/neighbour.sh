#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Nodes that have a net in shared memory beside TCP find it by themselves: calls to
# a TCP NID go through the ring, over TCP while the ring is not there, and through
# the ring again; none is lost. Processes that may not use it do not.
. "${srcdir:-.}/tests/tools/lib.sh" || exit

free_port port || skip "perl cannot find a free port"
# Numbers that no other test has: see shm.sh.
a=$(((BASHPID << 12 | 0x2000000 | 3900) & 0x7fffffff)) b=$((a + 1)) c=$((a + 2)) d=$((a + 3))
one=$dir/one.sock

need_rpcserve one --net "tcp(127.0.0.21),shm($a)" --port "$port" --socket "$one"
need_rpcserve two --net "shm($b)" --net "tcp(127.0.0.22)" --port "$port"
need_rpcserve plain --net "tcp(127.0.0.23)" --port "$port"
need_lnetd here --net "tcp(127.0.0.24),shm($c)" --port "$port"
client=(--net 'tcp(127.0.0.25),shm' --port "$port" --deadline 60s)

# ---- found by themselves ----

ctl 0 discover 127.0.0.21@tcp
ctl 0 peer show --nid 127.0.0.21@tcp
has out "primary nid: 127.0.0.21@tcp\$"
has out "nid: $a@shm\$"
# Shared memory is not the primary NID, even if it is named first.
ctl 0 discover "$b@shm"
ctl 0 peer show --nid 127.0.0.22@tcp
has out "primary nid: 127.0.0.22@tcp\$"
has out "nid: $b@shm\$"
ctl 0 ping 127.0.0.22@tcp --timeout 60
has out "nid: $b@shm\$"
ctl 0 --socket "$one" peer show --nid 127.0.0.24@tcp
has out "nid: $c@shm\$"
ctl 0 discover 127.0.0.23@tcp
ctl 0 peer show --nid 127.0.0.23@tcp
lacks out "@shm\$"

# by_ring TEXT: all calls went through the ring to that number
by_ring() {
	has out "calls $1, lost 0, resent 0, "
	has out "^  rail [0-9]+@shm to $2@shm: $1, "
	lacks out "^  rail .*@tcp to "
}

run 0 "$rpcping" "${client[@]}" --explain --count 500 127.0.0.21@tcp
by_ring 500 "$a"
run 0 "$rpcping" "${client[@]}" --explain --count 500 --inflight 16 --accept all 127.0.0.22@tcp
by_ring 500 "$b"
run 0 "$rpcping" "${client[@]}" --explain --count 40 --verify --bulk-read 1M 127.0.0.21@tcp
has out "calls 40, lost 0, resent 0, "
has out "interface [0-9]+@shm: sent [0-9.]+%, received (99|100)\."
# Three processes.
run 0 "$rpcping" "${client[@]}" --count 500 127.0.0.21@tcp 127.0.0.22@tcp 127.0.0.23@tcp
has out "^all: calls 1500, lost 0, |calls 500, lost 0, resent 0"

# One of the two has none.
run 0 "$rpcping" "${client[@]}" --explain --count 100 127.0.0.23@tcp
has out "^  rail 127.0.0.25@tcp to 127.0.0.23@tcp: 100, "
run 0 "$rpcping" --net 'tcp(127.0.0.25)' --port "$port" --explain --count 100 \
	--deadline 60s 127.0.0.21@tcp
has out "^  rail 127.0.0.25@tcp to 127.0.0.21@tcp: 100, "

# ---- the ring is cut under load, and comes back ----

# At the server as many messages have come by that net as 4 digits can tell, since
# it was added.
ring_is_used() {
	ctl_until 'recv_count: [1-9][0-9]{3}' --socket "$one" net show --net shm -v
}

for harm in net fault; do
	start_ping --explain --time 600s --inflight 16 127.0.0.21@tcp
	ring_is_used
	case $harm in
	net) ctl 0 --socket "$one" net del --net shm ;;
	fault) ctl 0 --socket "$one" fault drop add -s '*' -d '*' --rate 1 \
		--local_nid "$a@shm" ;;
	esac
	# Calls go on, over TCP.
	lines=$(wc -l <"$dir/live")
	await "$dir/live" ' [1-9][0-9]* calls/s' $((lines + 5))
	case $harm in
	net) ctl 0 --socket "$one" net add --net shm --if "$a" ;;
	fault)
		ctl 0 --socket "$one" fault drop del --all
		ctl 0 --socket "$one" net del --net shm
		ctl 0 --socket "$one" net add --net shm --if "$a"
		;;
	esac
	ring_is_used
	kill -INT "${pids[ping]}"
	end_ping 0
	has out "calls [0-9]+, lost 0, "
	has out "^  rail [0-9]+@shm to $a@shm: "
	has out "^  rail 127.0.0.25@tcp to 127.0.0.21@tcp: "
done

# ---- another process has the number now ----

# What the server tells over TCP is right at once; the ring's number was its own.
stop_lnetd two
need_rpcserve other --net "shm($b)" --port "$port"
need_rpcserve two --net "tcp(127.0.0.22),shm($d)" --port "$port"
ctl 0 discover --force 127.0.0.22@tcp
ctl 0 peer show --nid 127.0.0.22@tcp
has out "nid: $d@shm\$"
lacks out "nid: $b@shm\$"
run 0 "$rpcping" "${client[@]}" --explain --count 200 127.0.0.22@tcp
by_ring 200 "$d"

# ---- another user ----

if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
	user=(setpriv --reuid 65534 --regid 65534 --clear-groups)
	if "${user[@]}" "$rpcping" --version >/dev/null 2>&1; then
		run 0 "${user[@]}" "$rpcping" "${client[@]}" --explain --count 100 127.0.0.21@tcp
		has out "calls 100, lost 0, "
		has out "^  rail 127.0.0.25@tcp to 127.0.0.21@tcp: 100, "
		lacks out "^  rail [0-9]*@shm to "
	fi
fi
finish

#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Two nets, and two routers between them, over TCP:
#
#	rpcping 127.0.0.11@tcp1 --- a: .12@tcp1 .22@tcp2 --- rpcserve .24@tcp2
#			       \--- b: .13@tcp1 .23@tcp2 ---/
#
# Calls go through both; one router is killed under them, and comes back; the
# other one says that it routes no more. No call is lost.
. "${srcdir:-.}/tests/tools/lib.sh" || exit

free_port port || skip "perl cannot find a free port"
a=$dir/a.sock b=$dir/b.sock right=$dir/right.sock

router() { # NAME TCP1 TCP2
	need_lnetd "$1" --net "tcp1($2),tcp2($3)" --port "$port" \
		--accept all --socket "$dir/$1.sock"
	ctl 0 --socket "$dir/$1.sock" set routing 1
}

routes() { # NET GATEWAY...
	local gateway

	echo "route:"
	for gateway in "${@:2}"; do
		echo "- {net: $1, gateway: $gateway, hop: 1}"
	done
}

routed() { # SOCKET: messages that have been passed on
	"$lnetctl" --socket "$1" stats show |
		sed -n 's/^ *route_count: //p'
}

# Until the router has passed on more than it has now.
routes_on() { # SOCKET
	local before tries

	before=$(routed "$1")
	checks=$((checks + 1))
	for ((tries = 0; tries < 600; tries++)); do
		[ "$(routed "$1")" -le "$before" ] || return
		sleep 0.1
	done
	complain "$1 passes nothing on"
}

router a 127.0.0.12 127.0.0.22
router b 127.0.0.13 127.0.0.23
{
	echo "net: [{net type: tcp2, local NI(s): [{interfaces: {0: 127.0.0.24}}]}]"
	routes tcp1 127.0.0.22@tcp2 127.0.0.23@tcp2
} >"$dir/right.conf"
{
	echo "net: [{net type: tcp1, local NI(s): [{interfaces: {0: 127.0.0.11}}]}]"
	routes tcp2 127.0.0.12@tcp1 127.0.0.13@tcp1
} >"$dir/left.conf"
need_rpcserve server --config "$dir/right.conf" --port "$port" --accept all \
	--socket "$right"
client=(--config "$dir/left.conf" --port "$port")

# ---- what lnetctl shows ----

ctl 0 --socket "$right" route show
same out <<END
route:
-     net: tcp1
      gateway: 127.0.0.22@tcp2
-     net: tcp1
      gateway: 127.0.0.23@tcp2
END
ctl_until '^      state: up$' --socket "$right" route show \
	--gateway 127.0.0.22@tcp2 --verbose 5
ctl 0 --socket "$a" routing show
has out '^              nbuffers: 16384$'
has out '^    - enable: 1$'
ctl 0 --socket "$a" ping --timeout 60 127.0.0.24@tcp2
ctl 0 --socket "$right" path show --nid 127.0.0.11@tcp1
has out '^      gateway: 127.0.0.2[23]@tcp2$'
has out '^      gateway\(s\):$'

# ---- calls through them ----

start_ping --time 1h --verify --deadline 40 --grace 40 --inflight 4 \
	--bulk-write 64k 127.0.0.24@tcp2
routes_on "$a"
routes_on "$b"
kill -KILL "${pids[a]}"
wait "${pids[a]}"
unset 'pids[a]'
routes_on "$b"
router a 127.0.0.12 127.0.0.22
routes_on "$a"
# Both ends hear that it does not route any more, and use the other.
ctl 0 --socket "$b" set routing 0
ctl_until '^      state name: down$' --socket "$right" route show \
	--gateway 127.0.0.23@tcp2 --verbose 5
routes_on "$a"
kill -INT "${pids[ping]}"
end_ping 0
has out 'lost 0'

# ---- a receiver that does not read ----

# Who sends to it stands still, and the router's memory does not grow; another
# client's calls to another server go on meanwhile.

resident() { # NAME: the most so far, KiB
	sed -n 's/^VmHWM:[^0-9]*\([0-9]*\) kB/\1/p' "/proc/${pids[$1]}/status"
}

ctl 0 --socket "$a" set large_buffers 16
sed 's/127\.0\.0\.24/127.0.0.25/' "$dir/right.conf" >"$dir/right2.conf"
sed 's/127\.0\.0\.11/127.0.0.14/' "$dir/left.conf" >"$dir/left2.conf"
need_rpcserve other --config "$dir/right2.conf" --port "$port" --accept all \
	--socket "$dir/right2.sock"
before=$(resident a)
writers=()
for n in 1 2 3 4; do
	"$rpcping" "${client[@]}" --count 256 --inflight 64 --bulk-write 1M \
		--deadline 300 --grace 300 127.0.0.24@tcp2 \
		>"$dir/writer$n" 2>&1 </dev/null &
	writers+=($!)
done
routes_on "$a"
kill -STOP "${pids[server]}"
run 0 "$rpcping" --config "$dir/left2.conf" --port "$port" --count 2000 \
	--size 8k --verify --deadline 60 --grace 60 127.0.0.25@tcp2
has out 'lost 0'
# Buffers, and of each sender what is put aside; far from all that is under way.
grown=$(($(resident a) - before))
expect "the router has taken $grown KiB" [ $grown -lt $((64 << 10)) ]
kill -CONT "${pids[server]}"
for n in 1 2 3 4; do
	checks=$((checks + 1))
	wait "${writers[n - 1]}" && grep -q 'lost 0' "$dir/writer$n" || {
		complain "writer $n"
		sed 's/^/| /' "$dir/writer$n"
	}
done

# Without a router there is no way, and that is known at once.
ctl 0 --socket "$a" set routing 0
ctl_until '^      state name: down$' --socket "$right" route show \
	--gateway 127.0.0.22@tcp2 --verbose 5
ctl 143 --socket "$right" path show --nid 127.0.0.11@tcp1
has err 'no path to 127.0.0.11@tcp1: No route to host'
finish

#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Two networks, a client on the one, a server on the other, and two routers between:
#
#	client .1 --- rail 0 (tcp1) --- a .3, b .4 --- rail 1 (tcp2) --- server .2
#
# A router is killed, frozen, loses its link or its frames on either side, while calls
# go through both: no call is lost, the other router carries them meanwhile, and
# afterwards both do (requirements B1 to B4). Then ways that are not the same in
# both directions.
. "${srcdir:-.}/tests/net/hosts.sh" || exit
hosts_enter bash "$0" "$@" || exit 77
. "${srcdir:-.}/tests/tools/lib.sh" || exit

much=$((4 << 20)) # bytes: more than what pings and TCP's tries take

# ---- nodes ----

# on_host NAME PROGRAM ARGUMENT...: until it is ready
on_host() {
	local at

	at "$1"
	start "$1" "${at[@]}" "${@:2}" --port 988 --accept all \
		--socket "$dir/$1.sock" && return
	complain "$1: not ready, exit status $started"
	sed 's/^/| /' "$dir/$1.err"
	finish
}

router() { # NAME
	on_host "$1" "$lnetd" --foreground --net "tcp1(eth0),tcp2(eth1)"
	ctl 0 --socket "$dir/$1.sock" set routing 1
}

serve() { # GATEWAY...
	routed_conf tcp2 1 tcp1 "$@" >"$dir/server.conf"
	on_host server "$rpcserve" --config "$dir/server.conf"
}

# ---- what is seen ----

# carries NAME: until that router has passed on so much more
carries() {
	local tries before

	before=$(rail_bytes "$1" 0)
	checks=$((checks + 1))
	for ((tries = 0; tries < 1200; tries++)); do
		(($(rail_bytes "$1" 0) - before < much)) || return 0
		sleep 0.05
	done
	complain "$ran: router $1 carries nothing"
	sed 's/^/| /' "$dir/live"
}

# lose WHAT TAKE GIVE ARGUMENT...: router a is taken and given back under calls.
lose() {
	start_ping --time 1h --verify --deadline 120 --grace 120 "${@:4}" \
		10.9.1.2@tcp2
	ran=$1
	carries a
	carries b
	$2
	carries b
	$3
	carries a
	kill -INT "${pids[ping]}"
	end_ping 0
	has out '^  calls [1-9][0-9]*, lost 0,'
	sed -n "s/^  calls/$1: calls/p" "$dir/out"
}

killed() {
	kill -KILL "${pids[a]}"
	wait "${pids[a]}" 2>/dev/null
	unset 'pids[a]'
}
back() { router a; }
# Its sockets stay open, and its kernel acknowledges what arrives.
frozen() { kill -STOP "${pids[a]}"; }
thawed() { kill -CONT "${pids[a]}"; }
near_down() { host_link a down 0 3; }
near_up() { host_link a up 0 3; }
far_down() { host_link a down 1 3; }
far_up() { host_link a up 1 3; }
near_silent() { port_drop a0; }
far_silent() { port_drop a1; }

all_harms() { # NAME ARGUMENT...
	lose "$1: router killed" killed back "${@:2}"
	lose "$1: router frozen" frozen thawed "${@:2}"
	lose "$1: its near link down" near_down near_up "${@:2}"
	lose "$1: its far link down" far_down far_up "${@:2}"
	lose "$1: its near frames lost" near_silent wire_whole "${@:2}"
	lose "$1: its far frames lost" far_silent wire_whole "${@:2}"
}

hosts_routed || {
	complain "no hosts"
	finish
}
routed_conf tcp1 0 tcp2 a b >"$dir/client.conf"
router a
router b
serve a b
at client
ping=("${at[@]}" "$rpcping")
client=(--config "$dir/client.conf" --port 988)

all_harms "calls" --inflight 16
all_harms "bulk written" --inflight 4 --bulk-write 300k

# ---- messages that no call repeats: those lost tell of the frozen router ----

on_host client "$lnetd" --foreground --config "$dir/client.conf"
# The question that gateways are asked each minute shall not tell of it.
ctl 0 --socket "$dir/client.sock" set alive_router_check_interval 3600
through_a=(--socket "$dir/client.sock" route show -v --gateway 10.9.0.3@tcp1)
ctl 0 --socket "$dir/client.sock" ping --timeout 60 10.9.1.2@tcp2
frozen
for ((tries = 0; tries < 60; tries++)); do
	ctl 0 "${through_a[@]}"
	! grep -q 'state: down' "$dir/out" || break
	"$lnetctl" --socket "$dir/client.sock" ping --timeout 2 10.9.1.2@tcp2 \
		>/dev/null 2>&1
done
ctl 0 "${through_a[@]}"
has out 'state: down'
for _ in {1..8}; do
	ctl 0 --socket "$dir/client.sock" ping --timeout 60 10.9.1.2@tcp2
done
thawed
ctl_until 'state: up' "${through_a[@]}"
stop_lnetd client

# ---- one way there, and another one back ----

stop_lnetd server
serve b
routed_conf tcp1 0 tcp2 a >"$dir/client.conf"
on_host client "$lnetd" --foreground --config "$dir/client.conf"
ctl 0 --socket "$dir/client.sock" ping --timeout 60 10.9.1.2@tcp2
# The server takes nothing from a router that it would not answer by.
ctl 0 --socket "$dir/server.sock" set drop_asym_route 1
ctl 255 --socket "$dir/client.sock" ping --timeout 1 10.9.1.2@tcp2
ctl 0 --socket "$dir/server.sock" set drop_asym_route 0
ctl 0 --socket "$dir/client.sock" ping --timeout 60 10.9.1.2@tcp2
finish

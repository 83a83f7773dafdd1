#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The part of ulrpc_tutorial(7) about names is typed as it stands, and answers as it says;
# the port is another one. It has an etcd, and a DNS with the zone that the page shows, in
# a network of its own. examples/names.c is the program that the page shows:
# tests/tutorial_check.sh.
. "${srcdir:-.}/tests/tools/lib.sh" || exit
own_network dnsmasq etcd
. "${srcdir:-.}/tests/tools/typed.sh" || exit
SERVERS=2
COMMANDS=15
# Who asks etcd takes 2 s for a connection and 5 s for an answer, and says so when these
# are over. Delayed threads may need longer (stage noise): then, as a user would, this
# types again what has failed.
[ -z "${NOISE_SEED:-}" ] || patience=120

echo 'nameserver 127.0.0.1' >"$dir/resolv.conf"
echo '127.0.0.1 localhost' >"$dir/hosts"
for file in resolv.conf hosts; do
	mount --bind "$dir/$file" /etc/$file || skip "cannot replace /etc/$file"
done

start_etcd() {
	: >"$dir/etcd.log"
	ETCD_UNSUPPORTED_ARCH=arm64 etcd --data-dir "$dir/etcd" --logger zap \
		--log-outputs stderr 2>>"$dir/etcd.log" &
	pids[etcd]=$!
	await "$dir/etcd.log" 'serving (insecure )?client (requests|traffic)'
}

# The zone of the page, as options of dnsmasq.
start_dns() {
	local -a zone
	local name kind rest

	while read -r name kind rest; do
		name=${name%.}
		case $kind in
		A) zone+=("--host-record=$name,$rest") ;;
		SRV)
			# shellcheck disable=SC2086 # four words
			set -- $rest
			zone+=("--srv-host=$name,${4%.},$3,$1,$2")
			;;
		esac
	done < <(shown "ZONE names")
	expect "the page has another zone" test ${#zone[@]} = 4
	: >"$dir/dns.log"
	dnsmasq --no-daemon --conf-file=/dev/null --no-resolv --no-hosts \
		--listen-address=127.0.0.1 --bind-interfaces --local=/example/ \
		--log-facility="$dir/dns.log" --pid-file= "${zone[@]}" 2>/dev/null &
	pids[dns]=$!
	await "$dir/dns.log" 'started, version'
}

# The server has said this line and no other, unless its threads are delayed.
said_only() { # N LINE
	[ -n "${NOISE_SEED:-}" ] ||
		expect "server $1 says: $(cat "server$1.said")" \
			test "$(cat "server$1.said")" = "$2"
}

# Starts the servers as the page does; the input of server N is the descriptor 10 + N.
start_servers() {
	local -a lines
	local n command

	mapfile -t lines < <(shown "SERVER names")
	expect "the page starts the servers in another way" \
		test ${#lines[@]} = $((1 + 2 * SERVERS))
	for ((n = 0; n < SERVERS; n++)); do
		command=${lines[1 + 2 * n]#\$ }
		mkfifo "input$n"
		eval "exec $((10 + n))<>input$n"
		bash -c "exec $command <input$n >server$n.said 2>&1 10>&- 11>&-" &
		pids[server$n]=$!
		await "server$n.said" "^${lines[2 + 2 * n]}\$"
		said_only "$n" "${lines[2 + 2 * n]}"
	done
}

# The end of its input ends a server.
stop_server() { # N
	eval "exec $((10 + $1))>&-"
	expect "exit status of server $1: $(cat "server$1.said")" \
		wait "${pids[server$1]}"
	unset "pids[server$1]"
}

ln -s "$PWD/examples/names" "$dir/names"
start_etcd
start_dns
cd "$dir" || exit
start_servers
for part in "of hosts" "in a file" "in etcd" "in DNS"; do
	type_all "SHELL names $part"
done
stop_server 1
type_all "SHELL names without the second"
expect "$commands commands, and not $COMMANDS" test $commands = $COMMANDS
stop_server 0
for name in etcd dns; do
	kill -KILL "${pids[$name]}"
	wait "${pids[$name]}" 2>/dev/null
	unset "pids[$name]"
done
finish

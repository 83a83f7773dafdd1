# SPDX-License-Identifier: BSD-3-Clause
# Calls over two rails, and what befalls one of them: for sourcing after hosts.sh and
# tools/lib.sh. ULNET_RAILS: how often it does, for each load and each harm (1).

rounds=${ULNET_RAILS:-1}
some=$((1 << 20))  # bytes of calls on a rail: more than what pings take
much=$((16 << 20)) # ... so that what is tried on a lost rail is little beside it

# ---- what is seen of it ----

# Calls are answered: in two more live lines, as the first one may be of before.
recovered() {
	local line

	line=$(wc -l <"$dir/live")
	await "$dir/live" ' [1-9][0-9]* calls/s' $((line + 2))
}

# carries R BYTES: until the client has sent and received that many more on rail R.
carries() {
	local tries before

	before=$(rail_bytes client "$1")
	checks=$((checks + 1))
	for ((tries = 0; tries < 1200; tries++)); do
		(($(rail_bytes client "$1") - before < $2)) || return 0
		sleep 0.05
	done
	complain "$ran: rail $1 carries nothing"
	sed 's/^/| /' "$dir/live"
	return 1
}

# While rail 0 carries that much, rail 1 has next to nothing: what TCP and pings
# try.
alone() {
	local before

	before=$(rail_bytes client 1)
	carries 0 $much
	before=$(($(rail_bytes client 1) - before))
	expect "$ran: rail 1 had $before bytes" test $before -lt $((much / 4))
}

# ---- calls, and what befalls them ----

# call ARGUMENT...: in the background, with a live line each 100 ms
call() {
	local at

	at client
	: >"$dir/live"
	"${at[@]}" "$rpcping" "${client[@]}" --time 1h --verify --explain \
		--deadline 120 --grace 120 --live --interval 0.1 "$@" "$server" \
		>"$dir/out" 2>"$dir/live" </dev/null &
	pids[ping]=$!
	await "$dir/live" ' [1-9][0-9]* calls/s'
}

# Between NIs of different rails there is a way to the server over the one and a way
# back over the other, which is used while rail 1 is good for one direction.
half() {
	carries 0 $much
}

# lose WHAT TAKE SEEN GIVE ARGUMENT...: while the functions take rail 1, look at what
# is left, and give it
lose() {
	local what=$1 take=$2 seen=$3 give=$4 round

	ran=$what
	call "${@:5}"
	for ((round = 0; round < rounds; round++)); do
		carries 0 $some && carries 1 $some || break
		$take
		recovered
		$seen
		$give
	done
	carries 1 $some
	kill -INT "${pids[ping]}"
	end_ping 0
	has out '^  calls [1-9][0-9]*, lost 0,'
	sed -n "s/^  calls/$what: calls/p" "$dir/out"
}

client_link_down() { on client ip link set eth1 down; }
client_link_up() { on client ip link set eth1 up; }
server_link_down() { on server ip link set eth1 down; }
server_link_up() { on server ip link set eth1 up; }
client_address_del() { host_address client del 1 1; }
client_address_add() { host_address client add 1 1; }
server_address_del() { host_address server del 1 2; }
server_address_add() { host_address server add 1 2; }
# Neither host sees anything of that.
cable_out() { ip link set server1 nomaster; }
cable_in() { ip link set server1 master rail1; }
lose_sent() { wire_drop iifname client1; }
lose_received() { wire_drop oifname client1; }
lose_both() { lose_sent && lose_received; }

# all_harms NAME HALF ARGUMENT...: HALF is what is seen when frames of one direction
# are lost.
all_harms() {
	lose "$1: client's link down" client_link_down alone client_link_up \
		"${@:3}"
	lose "$1: server's link down" server_link_down alone server_link_up \
		"${@:3}"
	lose "$1: client's address removed" client_address_del alone \
		client_address_add "${@:3}"
	lose "$1: server's address removed" server_address_del alone \
		server_address_add "${@:3}"
	lose "$1: cable out" cable_out alone cable_in "${@:3}"
	lose "$1: sent frames lost" lose_sent "$2" wire_whole "${@:3}"
	lose "$1: received frames lost" lose_received "$2" wire_whole "${@:3}"
	lose "$1: frames lost" lose_both alone wire_whole "${@:3}"
}

# ---- nodes ----

# serve NET0 NET1: the server, on these; the client is configured in the same way.
serve() {
	local at

	cat >"$dir/conf" <<-CONF
		net:
		    - net type: $1
		      local NI(s): [ { interfaces: { 0: eth0 } } ]
		    - net type: $2
		      local NI(s): [ { interfaces: { 0: eth1 } } ]
		global:
		    discovery: 1
	CONF
	client=(--config "$dir/conf" --port 988)
	server=10.9.0.2@$1
	at server
	start server "${at[@]}" "$rpcserve" --config "$dir/conf" --port 988 \
		--accept all && return
	complain "rpcserve: not ready, exit status $started"
	sed 's/^/| /' "$dir/server.err"
	finish
}

hosts_add client 1 && hosts_add server 2 || {
	complain "no hosts"
	finish
}

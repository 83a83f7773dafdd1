#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Servers that are named by addresses and ports, by localhost, in lists, and in files
# that are watched. Names of hosts and of DNS: names_dns.sh. Requirement J1.
. "${srcdir:-.}/tests/tools/lib.sh" || exit
# Where a machine is busy, programs would say that their turns are late.
export ULNET_LOG=loop=err

for name in port second third nobody; do
	free_port "$name" || skip "perl cannot find a free port"
done
# shellcheck disable=SC2154 # free_port sets them
client=(--net 'tcp(127.0.0.1)' --port "$port" --deadline 60)
# Who has to be answered waits, also where a busy machine takes 5 s to connect.
ping() { # STATUS ARGUMENT...
	local -a wait=(--wait)

	[ "$1" = 0 ] || wait=()
	run "$1" timeout 100 "$rpcping" "${client[@]}" "${wait[@]}" --count 3 "${@:2}"
}

serve() { # NAME ADDRESS PORT [OPTION]...
	need_rpcserve "$1" --net "tcp($2)" --port "$3" --service echo "${@:4}"
}

serve one 127.0.1.1 "$port" --lst 127.0.0.1@tcp
serve two 127.0.1.2 "$port" --socket "$ULNET_SOCKET"
serve other 127.0.1.3 "$second" --lst 127.0.0.1@tcp
serve home 127.0.0.1 "$third"

ping 0 127.0.1.1
has out '^127.0.1.1: echo.Raw, .*'
ping 0 "127.0.1.3:$second"
ping 0 "127.0.1.3:$second@tcp"
ping 0 127.0.1.1@tcp,127.0.9.9@tcp
# What is local has its addresses of itself: RFC 6761, 6.3.
ping 0 "localhost:$third"
ping 0 "a.LocalHost.:$third@tcp"
# Nobody listens there.
run 1 timeout 100 "$rpcping" "${client[@]}" --deadline 5 --count 1 "127.0.1.3:$nobody"
has err 'does it listen on the port of the name, or else on port'
ping 1 zoo://127.0.0.1/x
has err '^rpcping: zoo://127.0.0.1/x: there is no such scheme$'
ping 2 127.0.1.1:x
has err "^rpcping: 127.0.1.1:x: 'x': a number was expected; a target is NIDs"

# ---- lists ----

# At the first address is nobody.
ping 0 127.0.1.9,127.0.1.1
ping 0 "127.0.1.3:$second,127.0.1.1@tcp" --explain
has out '127.0.1.3@tcp'
ping 2 127.0.1.1,
has err "^rpcping: 127.0.1.1,: '': a NID, or the name of a host, is expected; a"

# ---- tools that name nodes by NIDs only ----

ctl 0 ping --timeout 60 127.0.1.1
silent err
has out "^- *primary nid: 127.0.1.1@tcp\$"
ctl 0 discover 127.0.1.1@tcp
ctl 0 peer show --nid 127.0.1.1
has out "^- *primary nid: 127.0.1.1@tcp\$"
# It listens at another port than this node, which connects there for the ping.
ctl 0 ping --timeout 60 "127.0.1.3:$second" 127.0.1.1@tcp
has err "^lnetctl ping: 127.0.1.3:$second is 127.0.1.3@tcp, port $second\$"
has out "^- *primary nid: 127.0.1.3@tcp\$"
ctl 0 peer show --nid "127.0.1.3:$second"
has out "^- *primary nid: 127.0.1.3@tcp\$"
ctl 255 ping --timeout 60 "127.0.1.4:$second" "127.0.1.4:$nobody"
has err 'failed to ping 127.0.1.4@tcp: the node has this NID at another port'

console() { # STATUS ARGUMENT...
	run "$1" env LST_SESSION=names XDG_RUNTIME_DIR="$dir" "$lst" \
		--net 'tcp(127.0.0.1)' --port "$port" "${@:2}"
}
console 0 new_session lab
console 0 add_group servers 127.0.1.1
silent err
console 0 list_group servers
has out '127.0.1.1@tcp'
# A port is kept for the commands that follow: this node's own is another one.
console 0 add_group others "127.0.1.3:$second"
same err <<<"lst: 127.0.1.3:$second is 127.0.1.3@tcp, port $second"
console 0 update_group --refresh others
console 0 list_group others
has out '127.0.1.3@tcp'
console 1 add_group more "127.0.1.3:$nobody"
has err "^lst: 127.0.1.3:$nobody: its servers have other ports than the name says\$"
console 0 end_session

# ---- lists in files ----

stop_lnetd other
printf '%s\n' '# nobody' 127.0.1.9 "127.0.1.3:$second # it was stopped" \
	'127.0.1.2 1' >"$dir/list"
ping 0 "file://$dir/list"
ping 1 "file://$dir/none"
same err <<<"rpcping: file://$dir/none: No such file or directory"
printf '127.0.1.1\n127.0.1.1@nonet\n' >"$dir/bad"
ping 1 "file://$dir/bad"
same err <<<"rpcping: file://$dir/bad: line 2: '127.0.1.1@nonet': no net"
# Under calls, the list is replaced, gets a mistake, goes, and comes back.
echo 127.0.1.2 >"$dir/list"
ctl 0 ping --timeout 60 "file://$dir/list"
has err ' is 127.0.1.2@tcp$'
start_ping --wait --time 1h --grace 60s --rate 50 "file://$dir/list"
echo '127.0.1.1 x' >"$dir/new" && mv "$dir/new" "$dir/list"
await "$dir/live" "line 1: 'x': no weight: a number was expected; the addresses known"
rm "$dir/list"
await "$dir/live" 'No such file or directory; the addresses known before are kept'
echo 127.0.1.1 >"$dir/list"
stop_lnetd two
lines=$(wc -l <"$dir/live")
await "$dir/live" ' [1-9][0-9]* calls/s' $((lines + 2))
kill -INT "${pids[ping]}"
end_ping 0
has out 'lost 0,'

finish

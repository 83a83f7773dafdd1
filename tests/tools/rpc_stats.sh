#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What rpcserve has counted, and what of streams, by lnetctl.
. "${srcdir:-.}/tests/tools/lib.sh" || exit

free_port port || skip "perl cannot find a free port"
socket=$dir/rpc.sock

# What the service's methods do not read.
cat >"$dir/odd.proto" <<'END'
syntax = "proto3";
service echo { rpc EchoWorker(Odd) returns (Odd); }
message Odd { int32 payload = 1; }
END
run 0 protoc-c -I"$dir" --descriptor_set_out="$dir/odd.set" "$dir/odd.proto"

for poll in '' --poll; do
	need_rpcserve a --net 'tcp(127.0.0.2)' --port "$port" \
		--socket "$socket" $poll
	ctl 0 --socket "$socket" rpc show
	silent err
	has out '^rpc:$'
	has out '^    cpts: 1$'
	has out 'service: "?echo"?$'
	has out '^ +calls: 0$'
	lacks out '^ +failed_us:$'

	run 0 timeout 100 "$rpcping" --net 'tcp(127.0.0.1)' --port "$port" \
		--count 50 --size 100 127.0.0.2@tcp
	ctl 0 --socket "$socket" rpc show
	has out '^ +calls: (5[0-9]|[6-9][0-9]|[1-9][0-9]{2,})$'
	has out '^ +ok: (5[0-9]|[6-9][0-9]|[1-9][0-9]{2,})$'
	has out '^ +p999: [0-9]+\.[0-9]{3}$'
	has out '^ +estimate_us: [0-9]+\.[0-9]{3}$'
	lacks out buckets
	ctl 0 --socket "$socket" rpc show -v
	has out '^ +buckets:$'
	has out '^ +"?[0-9]+\.[0-9]{3}"?: [0-9]+$'

	# The slowest calls: those whose handler was told to wait.
	run 0 timeout 100 "$rpcping" --net 'tcp(127.0.0.1)' --port "$port" \
		--count 1 --delay 30ms 127.0.0.2@tcp
	ctl 0 --socket "$socket" rpc slow
	silent err
	has out '^rpc:$'
	has out '^    calls: \[\]$'
	has out '^    requests:$'
	has out '^ +- +service: "?echo"?$'
	has out '^ +peer: "U?[0-9]+-127\.0\.0\.1@tcp"$'
	has out '^ +end: "?ok"?$'
	has out '^ +(total|service): ([3-9][0-9]{4}|[0-9]{6,})\.[0-9]{3}$'
	has out '^ +reply: [0-9]+\.[0-9]{3}$'

	# What has failed has times of its own, by the way it ended. (Other calls may
	# have had to be repeated, which fails at the server, too.)
	run 1 timeout 100 "$tools/ulrpc" --net 'tcp(127.0.0.1)' --port "$port" \
		--deadline 60 --proto "$dir/odd.set" 127.0.0.2@tcp \
		call echo.EchoWorker '{"payload": 1}'
	ctl_until '^ +bad request:$' --socket "$socket" rpc show
	grep -A 1 -E '^ +bad request:$' "$dir/out" >"$dir/failed"
	expect "times of the bad request" grep -qE '^ +count: [1-9]' "$dir/failed"

	# A service is changed while it runs, all of it or nothing.
	ctl 0 --socket "$socket" rpc set --service echo
	silent err
	has out '^ +policy: "?fair"?$'
	has out '^ +window: 1024$'
	ctl 234 --socket "$socket" rpc set --service echo --window 16 \
		--policy 'fifo tbf method=Ecko rate=1'
	has err "policy: 'fifo tbf method=Ecko rate=1', at byte 16: rule 1: method: there is no 'Ecko'"
	ctl 234 --socket "$socket" rpc set -s echo --workers-min 4 --workers-max 3
	has err 'workers_max: 3 is less than workers_min, 4'
	ctl 234 --socket "$socket" rpc set -s echo --window 0
	has err 'window: 0 is not in 1'
	ctl 254 --socket "$socket" rpc set -s nobody --window 16
	has err "service: there is no 'nobody'"
	ctl 234 --socket "$socket" rpc set --window 16
	has err 'a name is expected, as service or as client'
	ctl 234 --socket "$socket" rpc set -s echo -c echo --window 16
	has err 'a name is expected, as service or as client'
	ctl 234 --socket "$socket" rpc set -s echo --inflight-max 16
	has err 'inflight_max: only clients have it'
	ctl 234 --socket "$socket" rpc set -c echo --window 16
	has err 'window: only services have it'
	ctl 234 --socket "$socket" rpc set -s echo --streams-max 16 --window 3
	has err 'streams_max: the service has no streams'
	ctl 234 --socket "$socket" rpc set -s echo --patience 1000000
	has err 'patience: only clients have it'
	ctl 234 --socket "$socket" rpc set -c echo --streams-max 16
	has err 'streams_max: only services have it'
	ctl 254 --socket "$socket" rpc set -c echo --queue-max 16
	has err "client: there is none of 'echo'"
	ctl 234 --socket "$socket" rpc set -s echo --request-limit 5
	has err 'request_limit: 5 is less than request_max, [0-9]+'
	ctl 234 --socket "$socket" rpc set -s echo --reply-limit 4294967296
	has err 'reply_limit: 4294967296 is not in 1'
	ctl 0 --socket "$socket" rpc set --service echo
	has out '^ +policy: "?fair"?$'
	has out '^ +window: 1024$'
	ctl 0 --socket "$socket" rpc set --service echo --window 16 \
		--policy 'rr quantum=4 tbf rate=50000' --workers-min 1 --workers-max 3
	silent out
	silent err
	ctl 0 --socket "$socket" rpc set --service echo
	has out '^ +policy: "?rr quantum=4 tbf rate=50000"?$'
	has out '^ +window: 16$'
	has out '^ +workers_max: 3$'
	ctl 0 --socket "$socket" rpc set -s echo --reply-limit 5000000 \
		--request-limit 6000000
	ctl 0 --socket "$socket" rpc set -s echo
	has out '^ +reply_limit: 5000000$'
	has out '^ +request_limit: 6000000$'
	run 0 timeout 100 "$rpcping" --net 'tcp(127.0.0.1)' --port "$port" \
		--count 50 127.0.0.2@tcp

	# What happens now: while somebody calls, and somebody does what cannot be.
	touch "$dir/go_on"
	while [ -e "$dir/go_on" ]; do
		"$rpcping" --net 'tcp(127.0.0.1)' --port "$port" --count 200 \
			127.0.0.2@tcp >/dev/null 2>&1
		"$rpcping" --net 'tcp(127.0.0.1)' --port "$port" --count 3 \
			--method Nothing 127.0.0.2@tcp >/dev/null 2>&1
	done &
	pids[calls]=$!
	ctl_until '^  Raw +[0-9.]*[1-9][0-9.]*k? +[0-9.]+[kM]? +[0-9.]+[kM]? +0 +0' \
		--socket "$socket" top --interval 1 --count 1
	has out '^SERVED +CALLS/s IN FLIGHT +QUEUED '
	has out '^echo +[0-9.]*[1-9][0-9.]*k? +[0-9]+ +[0-9]+ +[0-9.]+[kM]? +[0-9.]+'
	has out '^brw +0 +0 +0 +- +- +0 +0$'
	silent err
	rm "$dir/go_on"
	wait "${pids[calls]}"
	unset 'pids[calls]'
	COLUMNS=30 ctl 0 --socket "$socket" top --interval 0.1 --count 2
	expect "no line is longer" test "$(grep -E '^(SERVED|echo|  Raw)' "$dir/out" |
		awk 'length > 30' | wc -l)" = 0

	# A command that lnetctl does not know, and its node does.
	ctl 0 --socket "$socket" rpc metrics
	silent err
	has out '^# HELP ulnet_rpc_control_received_total '
	ctl 234 --socket "$socket" rpc metrics --of=me
	has err 'of'
	ctl 234 --socket "$socket" rpc metrics -v
	has err '^lnetctl rpc metrics: -v: --KEY VALUE is expected$'
	ctl 255 --socket "$socket" rpc metricks --of me
	has err "'metricks' is not a valid command"
	ctl 255 --socket "$dir/nobody" jobs show
	has err "'jobs' is not a valid command"

	ctl 0 --socket "$socket" rpc reset
	silent out
	ctl 0 --socket "$socket" rpc show
	checks=$((checks + 1))
	! grep -qE '^ +ok: ' "$dir/out" || complain "$ran: not reset"
	stop_lnetd a
done

# ---- streams ----

# What a client and a service with streams have is changed, and counted, while
# some are open.
at_server() { # STATUS ARGUMENT...
	ctl "$1" --socket "$dir/server.sock" "${@:2}"
}
at_client() {
	ctl "$1" --socket "$dir/client.sock" "${@:2}"
}
# tell LINE: says it to the client. hear TEXT: its next answer.
tell() {
	echo "$1" >&3
}
heard=0
hear() {
	heard=$((heard + 1))
	await "$dir/flow.out" "^$1\$" $heard
}

start server tests/tools/flow serve '127.0.0.3@tcp' "$port" "$dir/server.sock" ||
	complain "no server: $(cat "$dir/server.err")"
mkfifo "$dir/flow.in"
: >"$dir/flow.out"
tests/tools/flow call 127.0.0.4@tcp "$port" "$dir/client.sock" 127.0.0.3@tcp \
	<"$dir/flow.in" >"$dir/flow.out" &
pids[client]=$!
exec 3>"$dir/flow.in"
hear ready
tell hold
hear held
tell hold
hear held

# How many are open: statistics, metrics, top.
at_server 0 rpc show
has out '^ +streams_served: 2$'
grep -A 2 -E '^ +streams_served:$' "$dir/out" >"$dir/by_service"
expect "streams by service" grep -qE '^ +open: 2$' "$dir/by_service"
has out '^ +streams: \[\]$'
at_client 0 rpc show
has out '^ +streams_open: 2$'
grep -A 2 -E '^ +streams:$' "$dir/out" >"$dir/by_service"
expect "streams by service" grep -qE '^ +open: 2$' "$dir/by_service"
has out '^ +streams_served: \[\]$'
at_server 0 metrics
has out '^ulnet_rpc_streams_served 2$'
has out '^ulnet_rpc_server_streams\{service="flow"\} 2$'
at_client 0 metrics
has out '^ulnet_rpc_streams_open 2$'
has out '^ulnet_rpc_client_streams\{service="flow"\} 2$'
at_server 0 top --interval 0.1 --count 1
has out '^SERVED +CALLS/s IN FLIGHT +QUEUED +STREAMS '
has out '^flow +[0-9.]+ +[0-9]+ +[0-9]+ +2 '
at_client 0 top --interval 0.1 --count 1
has out '^CALLED +CALLS/s IN FLIGHT +QUEUED +STREAMS '
has out '^flow +[0-9.]+ +[0-9]+ +[0-9]+ +2 '

# Windows: new streams have the smaller one of both sides.
tell fill
hear 'filled 64'
at_server 0 rpc set -s flow
has out '^ +window_messages: 64$'
has out '^ +window_bytes: 65536$'
has out '^ +streams_max: 65536$'
at_server 0 rpc set -s flow --window-messages 7
tell fill
hear 'filled 7'
at_client 0 rpc set -c flow
has out '^ +window_messages: 64$'
has out '^ +patience: 60000000$'
at_client 0 rpc set -c flow --window-bytes 3 --window-messages 5
tell fill
hear 'filled 3'
at_client 0 rpc set -c flow
has out '^ +window_messages: 5$'
has out '^ +window_bytes: 3$'
at_client 234 rpc set -c flow --window-bytes 0
has err 'window_bytes: 0 is not in 1'
# What carries them is as long as they need.
at_client 234 rpc set -c ulrpc.streams --reply-limit 1000
has err 'reply_limit: what ulrpc.streams takes follows from the windows of streams'
at_server 234 rpc set -s ulrpc.streams --request-limit 70000
has err 'request_limit: what ulrpc.streams takes follows'
at_client 0 rpc set -c flow --reply-limit 1000

# Who is one too many waits until there may be more.
at_server 0 rpc set -s flow --streams-max 4
has_waited='^ulnet_rpc_server_ends_total\{service="flow",method="hold",cause="overloaded"\} [1-9]'
tell hold
ctl_until "$has_waited" --socket "$dir/server.sock" metrics
at_server 0 rpc set -s flow --streams-max 100
hear held
ctl_until '^ +streams_served: 3$' --socket "$dir/server.sock" rpc show
tell put
hear put
ctl_until '^ +streams_served: 2$' --socket "$dir/server.sock" rpc show

# Streams end when their server was out of reach for longer than their patience.
kill -STOP "${pids[server]}"
# Each of its threads stops, one after another.
expect "the server has stopped" timeout 60 sh -c "
	while grep -q '^State:[[:space:]]*[^T[:space:]]' /proc/${pids[server]}/task/*/status; do
		sleep 0.02
	done"
# Not before, or a machine that is slow meanwhile ends them.
at_client 0 rpc set -c flow --patience 100000
tell send
hear sent
tell wait
hear 'ended: deadline'
kill -CONT "${pids[server]}"
ctl_until '^ +streams_open: 0$' --socket "$dir/client.sock" rpc show
exec 3>&-
expect "the client's exit status" wait "${pids[client]}"
unset 'pids[client]'
kill -KILL "${pids[server]}"
wait "${pids[server]}" 2>/dev/null
unset 'pids[server]'

finish

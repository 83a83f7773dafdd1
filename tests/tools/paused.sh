#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A client that is stopped while its bulk is moved has no worker of brw that
# another client needs, and is not waited for at the end: requirement I2.
. "${srcdir:-.}/tests/tools/lib.sh" || exit

free_port port || skip "perl cannot find a free port"
socket=$dir/rpc.sock
need_rpcserve a --net 'tcp(127.0.0.2)' --port "$port" --service brw \
	--workers 1 --grace 0 --socket "$socket"

"$rpcping" --net 'tcp(127.0.0.1)' --port "$port" --service brw \
	--method WriteVerified --bulk-write 1M --inflight 8 --time 100s \
	--deadline 100s 127.0.0.2@tcp >"$dir/paused.out" 2>&1 &
pids[paused]=$!

# It is at work: from now on there is always something of it at the server.
at_work() { # SOCKET
	local tries

	for ((tries = 0; tries < 600; tries++)); do
		"$lnetctl" --socket "$1" rpc show >"$dir/stats" || return
		grep -qE '^ +ok: [1-9]' "$dir/stats" && return
		sleep 0.1
	done
	return 1
}
expect "the client that is to be stopped has a reply" at_work "$socket"
kill -STOP "${pids[paused]}"

for access in read write; do
	run 0 timeout 100 "$rpcping" --net 'tcp(127.0.0.3)' --port "$port" \
		--service brw --method "${access^}Verified" "--bulk-$access" 64k \
		--count 50 --deadline 20s 127.0.0.2@tcp
done

kill -KILL "${pids[paused]}"
wait "${pids[paused]}" 2>/dev/null
unset "pids[paused]"

# What is half sent to a stopped client is in the network's hands, who would wait
# for it for long; the end of the server does not.
for mode in "" --poll; do
	free_port port || skip "perl cannot find a free port"
	need_rpcserve b --net 'tcp(127.0.0.2)' --port "$port" --service echo \
		--grace 1ms --socket "$dir/b.sock" $mode
	run 0 "$lnetctl" --socket "$dir/b.sock" set transaction_timeout 3600
	"$rpcping" --net 'tcp(127.0.0.1)' --port "$port" --service echo \
		--method Raw --size 100k --inflight 512 --time 100s \
		--deadline 100s 127.0.0.2@tcp >"$dir/paused.out" 2>&1 &
	pids[paused]=$!
	expect "the client that is to be stopped has a reply" at_work "$dir/b.sock"
	kill -STOP "${pids[paused]}"
	kill -TERM "${pids[b]}"
	expect "rpcserve $mode does not wait for a client that is stopped" \
		timeout 60 tail --pid="${pids[b]}" -f /dev/null
	kill -KILL "${pids[paused]}"
	expect "rpcserve $mode ends with success" wait "${pids[b]}"
	wait "${pids[paused]}" 2>/dev/null
	unset "pids[paused]" "pids[b]"
done
finish

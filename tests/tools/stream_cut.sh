#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Streams of two programs, examples/lines, whose TCP connections are reset again and
# again in the middle of what they carry: each line comes once, and in order, in both
# directions, and the streams end well. When the server is killed, its stream does not
# wait for it.
. "${srcdir:-.}/tests/tools/lib.sh" || exit

free_port at || skip "perl cannot find a free port"
free_port behind
lines=examples/lines

# harm COMMAND: the proxy does it, and answers $said.
harm() {
	echo "$1" >&"$to_proxy"
	read -r -t 60 said <&"$from_proxy" || complain "the proxy is gone"
}

# was_cut N: at least so many connections were made since the last time.
was_cut() {
	local before=${connections:-0}

	harm count
	connections=$said
	expect "$((connections - before)) connections, and not $1" \
		test $((connections - before)) -ge "$1"
}

# What serve_count() of examples/lines.c answers.
answers() {
	LC_ALL=C awk '{ bytes += length($0) + 1
		printf "lines: %d, bytes: %d\n", NR, bytes }'
}

# serve FILE: until the end of fd 3.
serve() {
	start server bash -c "exec $lines serve $behind $1 <$dir/input 2>&1 3>&-" ||
		complain "no server"
}

seq -f '%05g, as long as a line of text is, for it has many words' 12000 \
	>"$dir/sent"
head -n 400 "$dir/sent" >"$dir/few"
mkfifo "$dir/input" "$dir/source"
exec 3<>"$dir/input"
serve "$dir/sent"
coproc proxy { exec tests/tools/proxy 127.0.0.1 "$at" 127.0.0.1 "$behind"; }
pids[proxy]=$!
from_proxy=${proxy[0]} to_proxy=${proxy[1]}
read -r -t 60 ready <&"$from_proxy" || complain "the proxy does not listen"

harm 'cut after 50000'
run 0 "$lines" read "127.0.0.1:$at"
same out <"$dir/sent"
was_cut 10
harm 'cut after 5000'
run 0 "$lines" count "127.0.0.1:$at" <"$dir/few"
answers <"$dir/few" | same out
was_cut 10

kill "${pids[proxy]}"
unset 'pids[proxy]'
exec 3>&-
expect "the server's exit status" wait "${pids[server]}"
unset "pids[server]"

# Lines come from a pipe, which the server opens when it has got the stream.
exec 3<>"$dir/input"
serve "$dir/source"
"$lines" read "127.0.0.1:$behind" >"$dir/out" 2>"$dir/err" 3>&- &
pids[client]=$!
exec 4>"$dir/source"
kill -KILL "${pids[server]}"
wait "${pids[server]}" 2>/dev/null
unset "pids[server]"
status=0
wait "${pids[client]}" || status=$?
unset 'pids[client]'
expect "the client's exit status is $status" test $status = 1
has err ': unreachable: 127.0.0.1@tcp: nobody has listened there for [0-9]+ s$'
finish

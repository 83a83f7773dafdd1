#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The part of ulrpc_tutorial(7) about contexts is typed as it stands, and answers as it
# says; the port is another one. examples/context.c is the program that the page shows:
# tests/tutorial_check.sh.
. "${srcdir:-.}/tests/tools/lib.sh" || exit
. "${srcdir:-.}/tests/tools/typed.sh" || exit
COMMANDS=5

# Waits until the server has said so many lines, or has ended.
server_says() { # LINES
	for ((i = 0; i < 600; i++)); do
		[ "$(wc -l <server.log)" -lt "$1" ] &&
			kill -0 "${pids[server]}" 2>/dev/null || return
		sleep 0.1
	done
}

start_server() {
	local -a lines

	mapfile -t lines < <(shown "SERVER context")
	expect "the page starts the server in another way" test ${#lines[@]} = 3
	mkfifo input
	exec 10<>input
	: >server.log
	bash -c "exec ${lines[1]#\$ }" <input >>server.log 2>&1 10>&- &
	pids[server]=$!
	server_says 1
	expect "the server says: $(cat server.log)" \
		test "$(cat server.log)" = "${lines[2]}"
}

ln -s "$PWD/examples/context" "$dir/context"
cd "$dir" || exit
start_server
type_all "SHELL context" shop
expect "$commands commands, and not $COMMANDS" test $commands = $COMMANDS
mapfile -t said < <(shown "SAID context")
server_says $((1 + ${#said[@]}))
exec 10>&-
expect "exit status of the server" wait "${pids[server]}"
unset "pids[server]"
expect "the server has said: $(cat server.log)" diff \
	<(printf '%s\n' "${said[@]}" | sort) <(tail -n +2 server.log | sort)
finish

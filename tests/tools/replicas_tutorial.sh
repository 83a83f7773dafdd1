#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The part of ulrpc_tutorial(7) about several servers is typed as it stands, and answers
# as it says; the port is another one. examples/several.c is the program that the page
# shows: tests/tutorial_check.sh.
. "${srcdir:-.}/tests/tools/lib.sh" || exit
. "${srcdir:-.}/tests/tools/typed.sh" || exit
SERVERS=3
COMMANDS=7

# Starts the servers as the page does; the input of server N is the descriptor 10 + N.
start_servers() {
	local -a lines
	local n command

	mapfile -t lines < <(shown "SERVER several")
	expect "the page starts the servers in another way" \
		test ${#lines[@]} = $((1 + 2 * SERVERS))
	for ((n = 0; n < SERVERS; n++)); do
		command=${lines[1 + 2 * n]#\$ }
		mkfifo "input$n"
		eval "exec $((10 + n))<>input$n"
		start "server$n" bash -c "exec $command <input$n 2>&1 10>&- 11>&- 12>&-" ||
			complain "$command: no server"
		expect "the server says: $ready" \
			test "$ready" = "${lines[2 + 2 * n]}"
	done
}

# The end of its input ends a server.
stop_server() { # N
	eval "exec $((10 + $1))>&-"
	expect "exit status of server $1" wait "${pids[server$1]}"
	unset "pids[server$1]"
}

ln -s "$PWD/examples/several" "$dir/several"
cd "$dir" || exit
start_servers
type_all "SHELL several" servers
stop_server 0
type_all "SHELL several without the first" servers
expect "$commands commands, and not $COMMANDS" test $commands = $COMMANDS
stop_server 1
stop_server 2
finish

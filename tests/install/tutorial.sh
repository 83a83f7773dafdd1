#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: tutorial.sh files PAGE DIR	writes the files that the page shows to DIR
#        tutorial.sh run PAGE DIR	does what the page tells a newcomer, there
#        tutorial.sh shown MARK PAGE	prints what the page shows after .\" MARK
# pkg-config has to find ulrpc, and the linker at run time its library.
set -euo pipefail

# Text between .Bd and .Ed behind a line .\" $1, as a reader sees it.
shown() { # "FILE x" PAGE
	awk -v mark=".\\\\\" $1" '
		$0 == mark { wanted = 1; next }
		wanted && /^\.Bd -literal/ { inside = 1; next }
		inside && /^\.Ed/ { exit }
		inside {
			sub(/^\\&/, "")
			gsub(/\\e/, "\\")
			print
		}' "$2"
}

write_files() { # PAGE DIR
	local name names

	names=$(sed -n 's/^\.\\" FILE //p' "$1")
	[ -n "$names" ]
	for name in $names; do
		shown "FILE $name" "$1" >"$2/$name"
		[ -s "$2/$name" ] || {
			echo "$1 shows nothing of $name"
			return 1
		}
	done
}

stop_server() {
	exec 3>&-
	wait "$server"
}

# Each command after "$ ", and the answer that follows it.
do_commands() {
	local line command='' expected='' said lines=0

	while read -r line; do
		if [[ $line != '$ '* && $line != END ]]; then
			expected+=$line$'\n'
			continue
		fi
		if [ -n "$command" ]; then
			said=$(timeout 60 $command)$'\n' || said+="status $?"
			echo "\$ $command"
			echo -n "$said"
			lines=$((lines + 1))
			[ "$said" = "$expected" ] || {
				echo "expected: $expected"
				return 1
			}
		fi
		command=${line#\$ } expected=''
	done
	[ $lines -gt 0 ]
}

# What the client says without a server. The reason, and the time, may be others.
client_alone() { # PAGE
	local said expected

	expected=$(shown "SAID without a server" "$1")
	said=$(timeout 60 ./client 2>&1) && return 1
	echo "$said"
	[[ $said == "${expected%%: nobody*}: "*$'\n'"${expected#*$'\n'}" ]] || {
		echo "expected: $expected"
		return 1
	}
}

run_page() { # PAGE
	make CC="${CC:-gcc}" CFLAGS="-g -Wall -Wextra -Werror $(pkg-config \
		--cflags ulrpc)"
	mkfifo input errors
	./server <input 2>errors &
	server=$!
	exec 3>input 4<errors
	read -r -t 60 ready <&4
	echo "$ready"
	grep -qxF "$ready" "$1"
	{ shown SHELL "$1"; echo END; } | do_commands
	{ shown "SHELL names" "$1"; echo END; } | do_commands
	echo >&3
	stop_server
	client_alone "$1"
}

if [ "$1" = shown ]; then
	shown "$2" "$3"
	exit
fi
page=$(realpath "$2")
mkdir -p "$3"
write_files "$page" "$3"
[ "$1" = files ] && exit
cd "$3"
run_page "$page"

#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# ulnet_security_tutorial(7) is typed as it stands, and answers as it says. "..." in an
# answer is any text, line ends are any blanks; the port is another one.
. "${srcdir:-.}/tests/tools/lib.sh" || exit
[ -x "$tools/ulnet-keys" ] || skip "built without OpenSSL"
free_port port || skip "perl cannot find a free port"
page=$(realpath "${srcdir:-.}")/man/man7/ulnet_security_tutorial.7
COMMANDS=10
shopt -s extglob

# What is to be typed, with its answers, as a reader sees it.
shown() {
	awk '
		/^\.\\" SHELL/ { wanted = 1; next }
		wanted && /^\.Bd -literal/ { inside = 1; next }
		/^\.Ed/ { wanted = inside = 0 }
		inside {
			sub(/^\\&/, "")
			gsub(/\\e/, "\\")
			print
		}' "$page" | sed "s/9988/$port/g"
}

# answers EXPECTED: is that what is in $dir/said?
answers() {
	perl -0777 -e '
		my $expected = quotemeta shift;
		$expected =~ s/(\\\s)+/\\s+/g;
		$expected =~ s/\\\.\\\.\\\./.*/g;
		exit(<STDIN> !~ /^$expected$/s);' "$1" <"$dir/said"
}

# What goes on in the background is ready when it has said a line.
type_in() { # COMMAND
	if [[ $1 == *' &' ]]; then
		start server bash -c "exec ${1% &}" || cat "$dir/server.err"
		echo "$ready" >"$dir/said"
	else
		timeout 100 bash -c "$1" >"$dir/said" 2>&1 </dev/null
	fi
}

type_and_compare() { # COMMAND EXPECTED
	echo "\$ $1"
	type_in "$1"
	cat "$dir/said"
	expect "$1: the page says otherwise: $2" answers "$2"
}

mkdir "$dir/new" && cd "$dir/new" || exit
PATH=$tools:$PATH
commands=0 command='' expected=''
while IFS= read -r line; do
	if [[ $command == *['\|'] ]]; then
		command=${command%\\}${line##+( )}
	elif [[ $line != '$ '* && $line != END ]]; then
		expected+=$line$'\n'
	else
		[ -z "$command" ] || type_and_compare "$command" "$expected"
		[ "$line" = END ] || commands=$((commands + 1))
		command=${line#\$ } expected=''
	fi
done < <(shown && echo END)
expect "$commands commands, and not $COMMANDS" test $commands = $COMMANDS
finish

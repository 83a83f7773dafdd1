#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: readme.sh README DIR
# Builds the programs that README shows, with the commands that it shows, in DIR, and
# runs them. pkg-config has to find ulrpc, and the linker at run time its library.
set -euo pipefail
readme=$(realpath "$1") dir=$2
mkdir -p "$dir"

# The block of C behind the line that names its file.
shown() { # FILE
	awk -v name="\`$1\`:" '
		index($0, name) { wanted = 1 }
		wanted && /^```c$/ { inside = 1; next }
		inside && /^```$/ { exit }
		inside' "$readme"
}

for name in greeter greet; do
	shown $name.c >"$dir/$name.c"
	grep -q 'int main' "$dir/$name.c"
	lines=$(grep -c . "$dir/$name.c")
	[ "$lines" -le 27 ] || {
		echo "$name.c has $lines lines: too many for a first look"
		exit 1
	}
done

cd "$dir"
built=0
while read -r command; do
	echo "\$ $command"
	eval "$command -Wall -Wextra -Wno-unused-parameter -Werror"
	built=$((built + 1))
done < <(sed -n 's/^    \(cc gree.*\)$/\1/p' "$readme")
[ $built = 2 ]

says() { # COMMAND EXPECTED
	local said

	said=$(timeout 60 "$1")
	echo "\$ $1"
	echo "$said"
	[ "$said" = "$2" ] || {
		echo "expected: $2"
		return 1
	}
	grep -qF "$2" "$readme"
}

# Nobody is there yet, then somebody is.
says ./greet "unreachable: not executed"
coproc timeout 60 stdbuf -oL ./greeter
read -r line <&"${COPROC[0]}"
[[ $line == ready* ]]
server=$COPROC_PID
exec {in}>&"${COPROC[1]}"
says ./greet "hello, world"
echo >&"$in"
wait "$server"

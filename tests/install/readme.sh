#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: readme.sh README DIR PREFIX
# Builds the programs that README shows, with the commands that it shows, in DIR, and
# runs them. What is installed in PREFIX is found as README says of a home directory,
# whose .local PREFIX therefore is.
set -euo pipefail
readme=$(realpath "$1") dir=$2 prefix=$(realpath "$3")
mkdir -p "$dir/home"
ln -sfn "$prefix" "$dir/home/.local"
HOME=$(realpath "$dir")/home
unset PKG_CONFIG_PATH LD_LIBRARY_PATH

exports=0
while read -r command; do
	echo "\$ $command"
	eval "$command"
	exports=$((exports + 1))
done < <(sed -n 's/^    \(export [A-Z_]*=\$HOME.*\)$/\1/p' "$readme")
[ $exports = 3 ]
for program in lnetd lnetctl rpcserve; do
	[ "$(command -v $program)" -ef "$prefix"/*bin/$program ]
	env -u LD_LIBRARY_PATH $program --version
done

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

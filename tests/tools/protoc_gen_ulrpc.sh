#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# protoc-gen-ulrpc, as protoc runs it: the tables it writes are C and say what
# the .proto says; what it cannot write it refuses.
. "${srcdir:-.}/tests/tools/lib.sh" || exit
command -v protoc >/dev/null || skip "protoc is not installed"
include=$(cd "${srcdir:-.}/include" && pwd)
made=$PWD/include
plugin=$PWD/tools/protoc-gen-ulrpc

generate() { # STATUS FILE.proto
	run "$1" protoc --plugin="$plugin" -I"$include" -I"$dir" \
		--ulrpc_out="$dir" "$2"
}

# proto PACKAGE: the rest is on stdin.
proto() {
	{
		echo "syntax = \"proto3\"; $1"
		echo "import \"ulnet/rpc.proto\"; message M {}"
		cat
	} >"$dir/t.proto"
}

# has LINE: in what was made.
has() {
	checks=$((checks + 1))
	grep -qxF -- "$1" "$dir/t.ulrpc.h" || {
		complain "no line: $1"
		cat "$dir/t.ulrpc.h"
	}
}

refused() { # MESSAGE
	generate 1 t.proto
	grep -qF -- "$1" "$dir/err" || complain "said: $(cat "$dir/err")"
}

proto 'package a.BigPackage;' <<'END'
service KeyStoreV2 {
  rpc Get(M) returns (M) {
    option (ulrpc.method).semantics = IDEMPOTENT;
    option (ulrpc.method).run = INLINE;
    option (ulrpc.method).reply_max = 65536;
  }
  rpc Put(M) returns (M);
  rpc Del(M) returns (M) {
    option (ulrpc.method) = { semantics: EXACTLY_ONCE priority: HIGH };
    option deprecated = true;
  }
}
service Other { rpc Low(M) returns (M) {
  option (ulrpc.method).priority = BACKGROUND; } }
END
generate 0 t.proto
has 'a__big_package__key_store_v2__options[] = {'
has $'\t{ "Get", ULRPC_IDEMPOTENT, ULRPC_PRIORITY_DEFAULT, ULRPC_RUN_INLINE, 65536 },'
has $'\t{ "Put", ULRPC_AT_MOST_ONCE, ULRPC_PRIORITY_DEFAULT, ULRPC_RUN_WORKER, 0 },'
has $'\t{ "Del", ULRPC_EXACTLY_ONCE, ULRPC_PRIORITY_HIGH, ULRPC_RUN_WORKER, 0 },'
has 'a__big_package__other__options[] = {'
has $'\t{ "Low", ULRPC_AT_MOST_ONCE, ULRPC_PRIORITY_BACKGROUND, ULRPC_RUN_WORKER, 0 },'

# The names are those that protoc-c gives.
run 0 protoc-c -I"$include" -I"$dir" --c_out="$dir" t.proto
grep -q ' a__big_package__key_store_v2__descriptor;' "$dir/t.pb-c.h" ||
	complain "protoc-c names services in another way"

# is_in LANGUAGE COMPILER...: what was made compiles, alone and twice.
is_in() {
	local lang=$1

	shift
	checks=$((checks + 1))
	printf '#include "t.ulrpc.h"\n#include "t.ulrpc.h"\n' |
		"$@" -x "$lang" -fsyntax-only -Wall -Wextra -pedantic \
			-Werror -I"$dir" -I"$made" -I"$include" - \
			2>"$dir/err" || {
		complain "not $lang: $(cat "$dir/err")"
	}
}

is_in c ${CC:-gcc}
# gcc comes without its C++ compiler; clang brings one.
if command -v c++ >/dev/null; then
	is_in c++ c++
else
	echo "no c++: what was made is not compiled as C++"
fi

# Without a package; with another one for C.
proto '' <<<'service S { rpc R(M) returns (M); }'
generate 0 t.proto
has 's__options[] = {'
if [ -e /usr/include/protobuf-c/protobuf-c.proto ]; then
	proto 'import "protobuf-c/protobuf-c.proto"; package a.b;
		option (pb_c_file).c_package = "mine";' \
		<<<'service S { rpc R(M) returns (M); }'
	generate 0 t.proto
	has 'mine__s__options[] = {'
fi

# A file without services, one that is in a folder, several at once.
mkdir "$dir/sub"
proto 'package t;' </dev/null
cp "$dir/t.proto" "$dir/sub/u.proto"
sed -i 's/package t;/package u;/' "$dir/sub/u.proto"
run 0 protoc --plugin="$plugin" -I"$include" -I"$dir" \
	--ulrpc_out="$dir" t.proto sub/u.proto
[ -s "$dir/sub/u.ulrpc.h" ] || complain "nothing made of sub/u.proto"

proto '' <<<'service S { rpc R(stream M) returns (M); }'
refused 't.proto: S.R: streams are not supported'
proto '' <<<'service S { rpc R(M) returns (M) {
	option (ulrpc.method).reply_max = 983041; } }'
refused 't.proto: S.R: reply_max is above 983040'
for field in semantics priority run; do
	# As a later rpc.proto may have them.
	mkdir -p "$dir/later/ulnet"
	perl -0pe 's/^(enum (\w+) \{.*?)\n\}/$1\n  $2_NEWER = 77;\n}/smg' \
		"$include/ulnet/rpc.proto" >"$dir/later/ulnet/rpc.proto"
	proto '' <<<"service S { rpc R(M) returns (M) {
		option (ulrpc.method).$field = ${field^}_NEWER; } }"
	run 1 protoc --plugin="$plugin" -I"$dir/later" -I"$dir" \
		--ulrpc_out="$dir" t.proto
	grep -q "t.proto: S.R: unknown.*$field" "$dir/err" ||
		complain "$field: $(cat "$dir/err")"
done
proto '' </dev/null
run 1 protoc --plugin="$plugin" -I"$include" -I"$dir" \
	--ulrpc_out=x=y:"$dir" t.proto
grep -q 'there are no parameters: x=y' "$dir/err" ||
	complain "said: $(cat "$dir/err")"

# Without protoc.
run 2 "$plugin" t.proto
run 1 bash -c "echo no | $plugin"
finish

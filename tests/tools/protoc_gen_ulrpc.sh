#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# protoc-gen-ulrpc, as protoc runs it: the tables it writes are C and say what
# the .proto says; the typed calls have the names and types of protoc-c; what it
# cannot write it refuses.
. "${srcdir:-.}/tests/tools/lib.sh" || exit
command -v protoc >/dev/null || skip "protoc is not installed"
include=$(cd "${srcdir:-.}/include" && pwd)
made=$PWD/include
plugin=$PWD/tools/bin/protoc-gen-ulrpc

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
has $'\t{ "Get", ULRPC_IDEMPOTENT, ULRPC_PRIORITY_DEFAULT, ULRPC_RUN_INLINE, 65536, ULRPC_STREAMING_NONE },'
has $'\t{ "Put", ULRPC_AT_MOST_ONCE, ULRPC_PRIORITY_DEFAULT, ULRPC_RUN_WORKER, 0, ULRPC_STREAMING_NONE },'
has $'\t{ "Del", ULRPC_EXACTLY_ONCE, ULRPC_PRIORITY_HIGH, ULRPC_RUN_WORKER, 0, ULRPC_STREAMING_NONE },'
has 'a__big_package__other__options[] = {'
has $'\t{ "Low", ULRPC_AT_MOST_ONCE, ULRPC_PRIORITY_BACKGROUND, ULRPC_RUN_WORKER, 0, ULRPC_STREAMING_NONE },'

# The names are those that protoc-c gives.
run 0 protoc-c -I"$include" -I"$dir" --c_out="$dir" t.proto
grep -q ' a__big_package__key_store_v2__descriptor;' "$dir/t.pb-c.h" ||
	complain "protoc-c names services in another way"

# is_in LANGUAGE COMPILER...: what was made compiles, also twice, together with
# what is on stdin.
is_in() {
	local lang=$1

	shift
	checks=$((checks + 1))
	{
		printf '#include "t.ulrpc.h"\n#include "t.ulrpc.h"\n'
		cat
	} >"$dir/use"
	"$@" -x "$lang" -fsyntax-only -Wall -Wextra -pedantic -Werror \
		-I"$dir" -I"$made" -I"$include" - <"$dir/use" 2>"$dir/err" || {
		complain "not $lang: $(cat "$dir/err" "$dir/use")"
	}
}

# in_both [STATEMENTS]: it is C and C++, and so is what uses it.
in_both() {
	local use="void use(ProtobufCService *, struct ulrpc_set *);
		void use(ProtobufCService *stub, struct ulrpc_set *set) {
		struct ulrpc_outcome end; struct ulrpc_result result;
		(void)stub; (void)set; (void)end; (void)result; ${1:-} }"

	run 0 protoc-c -I"$include" -I"$dir" --c_out="$dir" t.proto
	is_in c ${CC:-gcc} <<<"$use"
	# gcc comes without its C++ compiler; clang brings one.
	if command -v c++ >/dev/null; then
		is_in c++ c++ <<<"$use"
	else
		echo "no c++: what was made is not compiled as C++"
	fi
}

in_both 'A__BigPackage__M request = A__BIG_PACKAGE__M__INIT, *reply;
	a__big_package__key_store_v2__get_wait(stub, &request, &reply, &end);
	a__big_package__key_store_v2__del_set(set, stub, &request, 0, 0);
	a__big_package__other__low_result(&result, &reply);
	struct ulrpc_replicas_call_conf how; struct ulrpc_replicas_call *call;
	struct ulrpc_replicas_outcome which;
	ulrpc_replicas_call_conf_init(&how);
	a__big_package__other__low_replicas_call(stub, &request, &how, 0, 0,
		&call);
	a__big_package__other__low_replicas_wait(stub, &request, &how, &reply,
		&which);'

# Messages in messages, of other packages and files, and names of all kinds.
mkdir -p "$dir/far"
cat >"$dir/far/o.proto" <<'END'
syntax = "proto3"; package my_pkg.subPkg;
message HTTPThing { message inner_one {} message Inner {} }
message HTTP { message Thing { message inner_one {} } }
message lower_case2x {}
END
proto 'package a; import "far/o.proto";' <<'END'
message A { message b { message M {} } }
message MM {}
service S {
  rpc Get(A.b.M) returns (MM);
  rpc put_it(my_pkg.subPkg.HTTPThing.inner_one)
    returns (my_pkg.subPkg.lower_case2x);
  rpc HTTPGet2Now(my_pkg.subPkg.HTTP.Thing.inner_one) returns (M);
  rpc X__y(M) returns (M);
}
END
generate 0 t.proto
has '#include "t.pb-c.h"'
run 0 protoc-c -I"$include" -I"$dir" --c_out="$dir" far/o.proto
in_both 'A__A__B__M abm = A__A__B__M__INIT; A__MM *mm; A__M m = A__M__INIT, *m_p;
	MyPkg__SubPkg__HTTPThing__InnerOne one =
		MY_PKG__SUB_PKG__HTTPTHING__INNER_ONE__INIT;
	MyPkg__SubPkg__HTTP__Thing__InnerOne other =
		MY_PKG__SUB_PKG__HTTP__THING__INNER_ONE__INIT;
	MyPkg__SubPkg__LowerCase2x *lower;
	a__s__get_wait(stub, &abm, &mm, &end);
	a__s__put_it_wait(stub, &one, &lower, &end);
	a__s__put_it_result(&result, &lower);
	a__s__httpget2_now_wait(stub, &other, &m_p, &end);
	a__s__x__y_set(set, stub, &m, 0, 0);'

# Streams, of requests, of replies and of both, beside a method that is called.
proto 'package a;' <<'END'
message Q {} message R {}
service S {
  rpc Get(Q) returns (R);
  rpc Put(stream Q) returns (R);
  rpc List(Q) returns (stream R) { option (ulrpc.method).run = INLINE; }
  rpc TalkOn(stream Q) returns (stream R);
}
END
generate 0 t.proto
has $'\t{ "Get", ULRPC_AT_MOST_ONCE, ULRPC_PRIORITY_DEFAULT, ULRPC_RUN_WORKER, 0, ULRPC_STREAMING_NONE },'
has $'\t{ "Put", ULRPC_AT_MOST_ONCE, ULRPC_PRIORITY_DEFAULT, ULRPC_RUN_WORKER, 0, ULRPC_STREAMING_REQUESTS },'
has $'\t{ "List", ULRPC_AT_MOST_ONCE, ULRPC_PRIORITY_DEFAULT, ULRPC_RUN_INLINE, 0, ULRPC_STREAMING_REPLIES },'
has $'\t{ "TalkOn", ULRPC_AT_MOST_ONCE, ULRPC_PRIORITY_DEFAULT, ULRPC_RUN_WORKER, 0, ULRPC_STREAMING_BOTH },'
in_both 'A__Q q = A__Q__INIT, *q_p; A__R r = A__R__INIT, *r_p;
	struct ulrpc_streams *c = 0; struct ulrpc_stream *s = 0;
	struct ulrpc_stream_conf conf; conf.deadline = 1;
	struct ulrpc_metadata pair; conf.context = 0;
	struct ulrpc_replicas *rs = 0; struct ulrpc_replicas_outcome o;
	struct ulrpc_replicas_stream_conf at; at.deadline = 1;
	struct ulrpc_stream_outcome over;
	struct a__s__streams handlers = { 0, 0, 0, 0 };
	struct ulrpc_stream_service *service; A__S_Service own;
	a__s__put_replicas_open(rs, &at, 0, 0, 0);
	a__s__put_replicas_open_wait(rs, &at, &s, &o);
	a__s__list_replicas_open(rs, &q, &at, 0, 0, 0);
	a__s__list_replicas_open_wait(rs, &q, &at, &s, &o);
	a__s__talk_on_replicas_open(rs, &at, 0, 0, 0);
	a__s__talk_on_replicas_open_wait(rs, &at, &s, &o);
	a__s__put_open(c, &conf, &s); a__s__put_send(s, &q);
	a__s__put_send_wait(s, &q); a__s__put_finish_wait(s, &r_p, &over);
	a__s__put_next(s, &r_p); a__s__put_request(s, &q_p);
	a__s__put_request_wait(s, &q_p); a__s__put_reply(s, &r);
	a__s__list_open(c, &q, &conf, &s); a__s__list_next(s, &r_p);
	a__s__list_next_wait(s, &r_p); a__s__list_reply(s, &r);
	a__s__list_reply_wait(s, &r);
	ulrpc_stream_add(s, "took", "1", 1); ulrpc_stream_find(s, "took", &pair);
	a__s__talk_on_open(c, &conf, &s); a__s__talk_on_send(s, &q);
	a__s__talk_on_send_wait(s, &q); a__s__talk_on_next(s, &r_p);
	a__s__talk_on_next_wait(s, &r_p); a__s__talk_on_request(s, &q_p);
	a__s__talk_on_request_wait(s, &q_p); a__s__talk_on_reply(s, &r);
	a__s__talk_on_reply_wait(s, &r);
	a__s__serve_streams(0, &own, &handlers, 0, &service);'
checks=$((checks + 1))
grep -q 's__put_wait\|s__list_send\|s__list_finish\|s__get_open' "$dir/t.ulrpc.h" &&
	complain "a stream has functions of another kind of methods"

# A method has the name that a function of another one would have.
proto '' <<'END'
service S { rpc Put(M) returns (M); rpc PutWait(M) returns (M); }
END
generate 0 t.proto
has '/* No s__put_wait() for Put: the name is that of PutWait. */'
in_both 'M request = M__INIT, *reply; s__put_wait(stub, &request, 0, 0);
	s__put_result(&result, &reply);
	s__put_wait_wait(stub, &request, &reply, &end);'

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
	in_both 'Mine__M request = MINE__M__INIT, *reply;
		mine__s__r_wait(stub, &request, &reply, &end);'
fi

# A file without services, one that is in a folder, several at once.
mkdir "$dir/sub"
proto 'package t;' </dev/null
cp "$dir/t.proto" "$dir/sub/u.proto"
sed -i 's/package t;/package u;/' "$dir/sub/u.proto"
run 0 protoc --plugin="$plugin" -I"$include" -I"$dir" \
	--ulrpc_out="$dir" t.proto sub/u.proto
[ -s "$dir/sub/u.ulrpc.h" ] || complain "nothing made of sub/u.proto"
in_both

proto '' <<<'service S { rpc R(stream M) returns (M) {
	option (ulrpc.method).semantics = IDEMPOTENT; } }'
refused 't.proto: S.R: a stream has no semantics, priority and reply_max'
proto '' <<<'service S { rpc Arg(M) returns (stream M); }'
refused 't.proto: S.Arg: the handler of a stream cannot be called arg'
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

# SPDX-License-Identifier: BSD-3-Clause
# Programs that read code, and do not run it: cppcheck reads the files that a change
# touches; with --long cppcheck and clang-tidy read all files. For sourcing by ./check.
stage static touched '^[AMR] (base|bench|config|etcd|examples|lnd|lnet|names|rpc|secure|services|sim|tests|tools)/.*\.[ch]$|^. \.cppcheck'

own_sources() {
	(cd "$SRC" && find $(ls -d base names etcd secure lnet lnd config rpc sim services tools \
		examples bench tests 2>/dev/null) -name '*.c' \
		! -path 'tests/unit/*' ! -name '*.pb-c.c' | LC_ALL=C sort)
}

# Macros by which headers ask about the compiler. For each possible answer cppcheck
# would read every file once more.
asked_by_headers=(__GNUC__ __SANITIZE_ADDRESS__ __aarch64__ __clang_analyzer__
	__has_feature __i386__ __x86_64__)

# run_cppcheck [ARGUMENT...]: runs cppcheck on the files whose names stdin has. cppcheck
# reads no header of the system's, but must know the macros that are loops.
run_cppcheck() {
	local queue

	queue=$(${CC:-cc} -E -x c - <<<'#include <sys/queue.h>' |
		sed -n 's/^# 1 "\(\/.*queue\.h\)".*/\1/p' | head -n 1)
	cd "$SRC" && cppcheck -q -j "$JOBS" \
		--include="$queue" \
		--enable=warning,performance,portability --std=c11 \
		--language=c --inline-suppr --error-exitcode=1 \
		--suppressions-list=.cppcheck-suppressions \
		-I . -I include "$@" --file-list=-
}

# The sources that were changed, or all with --long.
looked_at() {
	if [ $long = yes ]; then
		own_sources
	else
		comm -12 <(own_sources) <(sed -n 's/^[AMR] //p' "$touched" |
			LC_ALL=C sort)
	fi
}

# Without --long, for one answer: that none of the macros is defined.
cppcheck_sources() {
	local answers=()

	[ $long = yes ] || answers=("${asked_by_headers[@]/#/-U}")
	looked_at | run_cppcheck "${answers[@]}"
}

# Reads the headers that ask, for all answers.
cppcheck_headers() {
	local pattern

	pattern=$(IFS='|' && echo "${asked_by_headers[*]}")
	(cd "$SRC" && grep -rlE "$pattern" --include='*.h' base include names secure lnet \
		lnd config rpc sim services tools examples bench tests) |
		run_cppcheck
}

# Generates the headers of programs that are not built in the tree.
user_headers() { # DIR PROTO...
	local dir=$1 proto
	shift

	mkdir -p "$dir"
	for proto; do
		protoc-c -I"$SRC/include" -I"${proto%/*}" --c_out="$dir" \
			"$proto" &&
			protoc --plugin="$BUILD/release/tools/bin/protoc-gen-ulrpc" \
				-I"$SRC/include" -I"${proto%/*}" \
				--ulrpc_out="$dir" "$proto" || return 1
	done
}

run_clang_tidy() { # FILE
	cd "$SRC" && timeout 600 clang-tidy --quiet "$1" -- -std=gnu11 \
		-include "$BUILD/release/config.h" -I . -I include \
		-isystem "$BUILD/release" -isystem "$BUILD/release/include" \
		-isystem "$BUILD/user_headers"
}

stage_static() {
	local file files

	files=$(looked_at | wc -l)
	if [ "$files" = 0 ]; then
		skip "cppcheck" "of no file that it looks at"
	else
		step "cppcheck ($files files)" cppcheck_sources || true
	fi
	step "cppcheck, headers" cppcheck_headers || true
	[ $long = yes ] || return 0
	release_configure || return 0
	step "generated headers" tree_make release generated \
		tools/bin/protoc-gen-ulrpc || return 0
	step "users' generated headers" user_headers "$BUILD/user_headers" \
		"$SRC/examples/tally/tally.proto" \
		"$SRC/examples/ledger/ledger.proto" \
		"$SRC/examples/store/store.proto" \
		"$SRC/tests/install/job.proto" || return 0
	while read -r file; do
		step "clang-tidy $file" run_clang_tidy "$file" || true
	# bench/peers needs headers that are not installed here.
	done < <(own_sources | grep -v '^bench/peers/')
}

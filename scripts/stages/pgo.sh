# SPDX-License-Identifier: BSD-3-Clause
# Builds with a profile of calls (--enable-pgo) and link-time optimisation together;
# checks that a call takes fewer instructions for it. With --long also by clang. For
# sourcing by ./check.
stage pgo touched '^. (configure|m4/|Makefile\.am|bench/train)'

pgo_build() { # NAME CC [ARGUMENT...]
	CONFIG_CACHE=$BUILD/config.cache.$2 \
		tree_configure "$1" CC="$2" --enable-pgo --enable-werror "${@:3}" &&
		tree_make "$1" bench/train libulnet.la libulrpc.la
}

# per_call BUILD DEPTH: the difference between two runs of which one makes 2,000 calls
# more. Names of functions, by which bench/budget.sh counts, may be others after
# link-time optimisation. Debugging information by clang is not what valgrind reads.
per_call() {
	local n bare=$BUILD/$1/bench/train.bare

	strip -o "$bare" "$BUILD/$1/bench/train" || return 1
	for n in 2000 4000; do
		valgrind --tool=callgrind --callgrind-out-file=/dev/null \
			"$bare" "$2" $n 2>&1 || return 1
	done | awk '
		/Collected :/ { was = now; now = $NF; seen++ }
		END { printf "%.0f\n", (now - was) / 2000; exit seen != 2 }'
}

profile_pays() { # PLAIN PROFILED
	local depth plain now

	for depth in 1 64; do
		plain=$(per_call "$1" $depth) && now=$(per_call "$2" $depth) || return 1
		echo "$depth under way: $now instructions for a call, $plain without a profile"
		[ "$now" -lt "$plain" ] || return 1
	done
}

# refused PROFDATA TEXT: does configure say so, before anything is built?
refused() {
	local log=$logs/pgo-refused.log

	# A cache is for one environment.
	sed '/^ac_cv_env_/d' "$BUILD/config.cache.clang" >"$BUILD/config.cache.refused" || return 1
	! CONFIG_CACHE=$BUILD/config.cache.refused \
		tree_configure pgo-refused CC=clang --enable-pgo PROFDATA="$1" >"$log" 2>&1 &&
		grep "^configure: error: .*$2" "$log"
}

refuses_others() {
	refused /nowhere/llvm-profdata "there is no /nowhere/llvm-profdata" &&
		refused true "true is of another one"
}

by_clang() {
	step "build with --enable-pgo by clang" pgo_build pgo-clang clang || return 0
	step "clang, with no llvm-profdata of its version" refuses_others || true
	! configure clang clang --enable-werror ||
		! step "build by clang" tree_make clang bench/train ||
		step "calls take fewer instructions by clang" \
			profile_pays clang pgo-clang || true
}

stage_pgo() {
	step "build with --enable-pgo and --enable-lto" pgo_build pgo gcc --enable-lto ||
		return 0
	! release_build bench/train ||
		step "calls take fewer instructions" profile_pays release pgo || true
	[ $long = no ] || by_clang
}

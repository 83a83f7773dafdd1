# SPDX-License-Identifier: BSD-3-Clause
# Checks that make dist packs all of the tree, and that what it packs builds; with --long
# also that builds with and without TLS call each other. For sourcing by ./check.
stage dist touched '^[ADR] |^. (configure|m4/|(.*/)?(Makefile\.am|module\.mk))'

# Tests that read files of the tree. Other tests would say nothing new of a copy of the
# tree, and are not run there; unit tests, which take long to compile, only with --long.
reading_tests() {
	cd "$SRC" && {
		[ $long = no ] ||
			grep -rlE '(source|golden|tape|ping_rig)\.h"' \
				--include='*_test.c' tests/unit |
			sed 's,^tests/unit/,,; s,/[^/]*$,_test,; s,/,_,g; s,^,tests/unit/,'
		echo tests/lnd/replay
		grep -H srcdir tests/*_check.sh tests/{tools,net}/*.sh |
			grep -vE '/(lib|hosts|harm|proven|typed)\.sh' | cut -d : -f 1
	} | sort -u | tr '\n' ' '
}

check_dist() {
	local tests programs=(tests/states tests/tools/tape_pcap) name
	local flags="--enable-werror CC=gcc TESTS_CFLAGS='$tests_cflags' \
		--cache-file=$BUILD/config.cache.gcc"

	# rdma-core is not everywhere, nor is OpenSSL 3.
	[ $long = no ] || flags+=" --without-verbs --without-tls --without-etcd"
	tests=$(reading_tests)
	for name in $tests; do
		[[ $name == *.sh ]] || programs+=("$name")
	done
	rm -f "$BUILD"/release/ulnet-*.tar.gz
	tree_make release distcheck TESTS="$tests" \
		check_PROGRAMS="${programs[*]}" DISTCHECK_CONFIGURE_FLAGS="$flags"
}

# The tree's files, as git knows them, or all that there are in its folders.
tree_files() {
	[ -e "$top/.git" ] && git -C "$top" ls-files --cached --others \
		--exclude-standard --deduplicate 2>/dev/null |
		(cd "$top" && while read -r file; do
			[ ! -e "$file" ] || echo "$file"
		done) ||
		(cd "$SRC" && find base bench config debian demo examples \
			include lnd lnet m4/ulnet* man packaging rpc scripts \
			names secure services sim tests tools -type f)
}

# Everything in the tree is distributed, but for files of CI and git.
check_distributed() {
	tree_files | grep -vE '^\.(ci/|git)' | LC_ALL=C sort >"$logs/tree_files"
	tar -tzf "$BUILD"/release/ulnet-*.tar.gz | sed 's,^[^/]*/,,' | LC_ALL=C sort |
		comm -23 "$logs/tree_files" - | sed 's/$/: not distributed/' |
		{ ! grep .; } && test -s "$logs/tree_files"
}

# As far as their settings allow.
builds_talk() {
	cd "$BUILD/release" &&
		srcdir=$SRC bash "$SRC/tests/install/builds.sh" "$BUILD/notls"
}

builds_together() {
	configure notls gcc --enable-werror --without-tls --without-etcd &&
		step "build without TLS" tree_make notls all &&
		step "build with TLS" tree_make release all &&
		step "builds with and without TLS call each other" builds_talk
}

stage_dist() {
	release_configure || return 0
	step "make distcheck" check_dist || return 0
	step "all files are distributed" check_distributed || true
	[ $long = no ] || builds_together || true
}

# Measurements; not part of make check. bench/run builds and calls them.
if !WITH_FUZZERS
EXTRA_PROGRAMS += %D%/budget %D%/core %D%/growth %D%/herd %D%/known %D%/lossy \
	%D%/many %D%/proven %D%/raw_shm %D%/raw_tcp %D%/replicas %D%/route %D%/rpc %D%/shm %D%/slow %D%/stream \
	%D%/tcp %D%/tcp_peers %D%/train %D%/wait
%C%_budget_SOURCES = %D%/budget.c %D%/node.c %D%/node.h %D%/duo.c %D%/duo.h
%C%_growth_SOURCES = %D%/growth.c %D%/node.c %D%/node.h %D%/duo.c %D%/duo.h
%C%_herd_SOURCES = %D%/herd.c %D%/herd_law.c %D%/herd_law.h
%C%_known_SOURCES = %D%/known.c %D%/duo.c %D%/duo.h
%C%_lossy_SOURCES = %D%/lossy.c %D%/node.c %D%/node.h %D%/duo.c %D%/duo.h
%C%_many_SOURCES = %D%/many.c %D%/node.c %D%/node.h %D%/duo.c %D%/duo.h
%C%_proven_SOURCES = %D%/proven.c %D%/node.c %D%/node.h %D%/duo.c %D%/duo.h
%C%_raw_shm_SOURCES = %D%/raw_shm.c %D%/duo.c %D%/duo.h
%C%_raw_tcp_SOURCES = %D%/raw_tcp.c %D%/duo.c %D%/duo.h
%C%_replicas_SOURCES = %D%/replicas.c %D%/duo.c %D%/duo.h
%C%_replicas_LDADD = libulnetetcdcore.a $(LDADD) $(ETCD_LIBS)
%C%_route_SOURCES = %D%/route.c %D%/duo.c %D%/duo.h
%C%_rpc_SOURCES = %D%/rpc.c %D%/load.c %D%/load.h %D%/duo.c %D%/duo.h
%C%_stream_SOURCES = %D%/stream.c %D%/node.c %D%/node.h %D%/load.c %D%/load.h %D%/duo.c %D%/duo.h
%C%_slow_SOURCES = %D%/slow.c %D%/node.c %D%/node.h %D%/duo.c %D%/duo.h
%C%_shm_SOURCES = %D%/tcp.c %D%/duo.c %D%/duo.h
%C%_shm_CPPFLAGS = $(AM_CPPFLAGS) -DOVER_SHM=1
%C%_tcp_SOURCES = %D%/tcp.c %D%/duo.c %D%/duo.h
%C%_tcp_peers_SOURCES = %D%/tcp_peers.c %D%/duo.c %D%/duo.h
%C%_wait_SOURCES = %D%/wait.c %D%/duo.c %D%/duo.h
%C%_train_SOURCES = %D%/train.c %D%/node.c %D%/node.h %D%/duo.c %D%/duo.h
# Nothing else: what is built here alone is built twice with --enable-pgo.
%C%_train_LDADD = $(ulrpc_archives) $(ulnet_archives) $(ulrpc_libs) $(ulnet_libs)
if WITH_TLS
EXTRA_PROGRAMS += %D%/knock %D%/secure
%C%_knock_SOURCES = %D%/knock.c %D%/duo.c %D%/duo.h
%C%_knock_LDADD = libulnetsecure.a $(LDADD) $(OPENSSL_LIBS)
%C%_secure_SOURCES = %D%/secure.c %D%/duo.c %D%/duo.h
%C%_secure_LDADD = libulnetsecure.a $(LDADD) $(OPENSSL_LIBS)
else
EXTRA_DIST += %D%/knock.c %D%/secure.c
endif
endif
EXTRA_DIST += %D%/run %D%/tcp.sh %D%/rpc.sh %D%/growth.sh %D%/herd.sh %D%/knock.sh %D%/many.sh %D%/overload.sh %D%/survive.sh %D%/rails.sh %D%/replicas.sh %D%/streams.sh %D%/failover.sh %D%/flavours.sh %D%/routers.sh %D%/rows.sh %D%/secure.sh %D%/shm.sh %D%/verbs.sh
# What came out, and its plots: ./check --only layers looks at whether they agree.
EXTRA_DIST += %D%/MEASURED.md %D%/plot %D%/plots
# The instructions that a call may cost: looked at by ./check.
EXTRA_DIST += %D%/budget.sh %D%/budget.txt %D%/cores.sh
# bench/rpc.sh builds these, where the libraries are.
EXTRA_DIST += %D%/load.c %D%/load.h %D%/peers/peer_ucx.c \
	%D%/peers/peer_fabric.c %D%/peers/peer_zmq.c %D%/peers/peer_grpc.cc \
	%D%/peers/peer_grpc.h %D%/peers/peer_grpc_stream.cc

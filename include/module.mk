# Installed headers.
ulnetincludedir = $(includedir)/ulnet
ulnetinclude_HEADERS =
ulnetinclude_HEADERS += %D%/ulnet/nid.h
ulnetinclude_HEADERS += %D%/ulnet/lnet.h
ulnetinclude_HEADERS += %D%/ulnet/context.h
ulnetinclude_HEADERS += %D%/ulnet/control.h
ulnetinclude_HEADERS += %D%/ulnet/etcd.h
ulnetinclude_HEADERS += %D%/ulnet/fault.h
ulnetinclude_HEADERS += %D%/ulnet/keys.h
ulnetinclude_HEADERS += %D%/ulnet/loop.h
ulnetinclude_HEADERS += %D%/ulnet/names.h
ulnetinclude_HEADERS += %D%/ulnet/o2ib.h
ulnetinclude_HEADERS += %D%/ulnet/path.h
ulnetinclude_HEADERS += %D%/ulnet/policy.h
ulnetinclude_HEADERS += %D%/ulnet/replicas.h
ulnetinclude_HEADERS += %D%/ulnet/route.h
ulnetinclude_HEADERS += %D%/ulnet/rpc.h
ulnetinclude_HEADERS += %D%/ulnet/service.h
ulnetinclude_HEADERS += %D%/ulnet/sim.h
ulnetinclude_HEADERS += %D%/ulnet/spans.h
ulnetinclude_HEADERS += %D%/ulnet/store.h
ulnetinclude_HEADERS += %D%/ulnet/stream.h
ulnetinclude_HEADERS += %D%/ulnet/stub.h
ulnetinclude_HEADERS += %D%/ulnet/thread.h

# Messages, and what protoc-c makes of them.
dist_ulnetinclude_DATA =
nodist_ulnetinclude_HEADERS =
dist_ulnetinclude_DATA += %D%/ulnet/rpc.proto
nodist_ulnetinclude_HEADERS += %D%/ulnet/rpc.pb-c.h
nodist_libulrpcproto_a_SOURCES += %D%/ulnet/rpc.pb-c.c
protos_made += %D%/ulnet/rpc.pb-c.h %D%/ulnet/rpc.pb-c.c
dist_ulnetinclude_DATA += %D%/ulnet/about.proto %D%/ulnet/schema.proto
nodist_ulnetinclude_HEADERS += %D%/ulnet/about.pb-c.h %D%/ulnet/schema.pb-c.h
nodist_libulrpcproto_a_SOURCES += %D%/ulnet/about.pb-c.c %D%/ulnet/schema.pb-c.c
protos_made += %D%/ulnet/about.pb-c.h %D%/ulnet/about.pb-c.c
protos_made += %D%/ulnet/schema.pb-c.h %D%/ulnet/schema.pb-c.c

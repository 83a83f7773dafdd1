# A plug-in that protoc runs, for authors of .proto files.
tools_bin_protoc_gen_ulrpc_SOURCES = %D%/protoc_gen_ulrpc.c
nodist_tools_bin_protoc_gen_ulrpc_SOURCES = %D%/plugin.pb-c.c
tools_bin_protoc_gen_ulrpc_LDADD = libulrpcproto.a $(PROTOBUF_C_LIBS)
$(tools_bin_protoc_gen_ulrpc_OBJECTS): | $(protos_made)
dist_noinst_DATA += %D%/plugin.proto
protos_made += %D%/plugin.pb-c.h %D%/plugin.pb-c.c

tools_bin_ulrpc_SOURCES = %D%/ulrpc.c
tools_bin_ulrpc_SOURCES += %D%/json.c %D%/json.h
tools_bin_ulrpc_SOURCES += %D%/message.h %D%/print.c %D%/read.c
tools_bin_ulrpc_SOURCES += %D%/schema.c %D%/schema.h
tools_bin_ulrpc_SOURCES += %D%/stream.c %D%/stream.h
tools_bin_ulrpc_LINK = $(INSTALLED_LINK)
tools_bin_ulrpc_LDADD = libtools.a $(libulrpc) $(libulnetctl) $(PROTOBUF_C_LIBS) -lm

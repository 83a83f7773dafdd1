tools_bin_rpcping_SOURCES = %D%/rpcping.c %D%/rpcping.h
tools_bin_rpcping_SOURCES += %D%/rpcping_load.c %D%/rpcping_options.c
tools_bin_rpcping_SOURCES += %D%/rpcping_report.c
tools_bin_rpcping_LINK = $(INSTALLED_LINK)
tools_bin_rpcping_LDADD = libtools.a libservices.a $(libulrpc) $(libulnetctl) $(PROTOBUF_C_LIBS)

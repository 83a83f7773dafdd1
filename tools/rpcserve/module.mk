tools_bin_rpcserve_SOURCES = %D%/rpcserve.c
tools_bin_rpcserve_LINK = $(INSTALLED_LINK)
tools_bin_rpcserve_LDADD = libtools.a liblst.a libservices.a $(libulrpc) $(libulnetctl) \
	$(PROTOBUF_C_LIBS) $(MICROHTTPD_LIBS)

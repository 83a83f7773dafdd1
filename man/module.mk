# Every page; aliases (.so man3/x.3) too. tests/man_check.sh compares the list with
# the folder and with the public headers.
dist_man_MANS += %D%/man3/lnet_id_format.3
dist_man_MANS += %D%/man3/lnet_id_parse.3
dist_man_MANS += %D%/man3/lnet_net_format.3
dist_man_MANS += %D%/man3/lnet_net_parse.3
dist_man_MANS += %D%/man3/lnet_nid.3
dist_man_MANS += %D%/man3/lnet_nid_cmp.3
dist_man_MANS += %D%/man3/lnet_nid_eq.3
dist_man_MANS += %D%/man3/lnet_nid_format.3
dist_man_MANS += %D%/man3/lnet_nid_from_nid4.3
dist_man_MANS += %D%/man3/lnet_nid_is_any.3
dist_man_MANS += %D%/man3/lnet_nid_is_lo.3
dist_man_MANS += %D%/man3/lnet_nid_is_nid4.3
dist_man_MANS += %D%/man3/lnet_nid_make.3
dist_man_MANS += %D%/man3/lnet_nid_net.3
dist_man_MANS += %D%/man3/lnet_nid_parse.3
dist_man_MANS += %D%/man3/lnet_nid_to_nid4.3
dist_man_MANS += %D%/man3/lnet_nidlist.3
dist_man_MANS += %D%/man3/lnet_nidlist_format.3
dist_man_MANS += %D%/man3/lnet_nidlist_free.3
dist_man_MANS += %D%/man3/lnet_nidlist_match.3
dist_man_MANS += %D%/man3/lnet_nidlist_parse.3

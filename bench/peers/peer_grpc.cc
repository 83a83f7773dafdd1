/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gRPC's C++ library: unary calls whose messages are bytes and nothing else, a
 * completion queue on either side, one thread each. bench/load.h tells the
 * command line and what is printed; with --keys both sides prove who they are by
 * TLS. The service is what protoc would generate
 * for a "raw" method, without copies in and out of protocol buffers.
 */
#include "bench/peers/peer_grpc.h"

#include <fstream>
#include <iterator>
#include <memory>
#include <vector>

#include <grpcpp/generic/generic_stub.h>

namespace
{

const char method[] = "/bench.Load/Call";

/* ---- keys ---- */

std::string file(const struct load *l, const char *name)
{
	std::ifstream in(std::string(l->keys) + "/" + name);

	if (!in)
		fail(l->keys, name);
	return std::string(std::istreambuf_iterator<char>(in), {});
}

std::shared_ptr<grpc::ServerCredentials> server_credentials(
	const struct load *l)
{
	grpc::SslServerCredentialsOptions options(
		GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);

	if (!l->keys)
		return grpc::InsecureServerCredentials();
	options.pem_root_certs = file(l, "authority.crt");
	options.pem_key_cert_pairs.push_back(
		{ file(l, "a.key"), file(l, "a.crt") });
	return grpc::SslServerCredentials(options);
}

std::shared_ptr<grpc::ChannelCredentials> channel_credentials(
	const struct load *l)
{
	grpc::SslCredentialsOptions options;

	if (!l->keys)
		return grpc::InsecureChannelCredentials();
	options.pem_root_certs = file(l, "authority.crt");
	options.pem_private_key = file(l, "a.key");
	options.pem_cert_chain = file(l, "a.crt");
	return grpc::SslCredentials(options);
}

/* ---- the server ---- */

class service : public grpc::Service
{
      public:
	service()
	{
		AddMethod(new grpc::internal::RpcServiceMethod(
			method, grpc::internal::RpcMethod::NORMAL_RPC,
			nullptr));
		MarkMethodRaw(0);
	}
	using grpc::Service::RequestAsyncUnary;
};

struct served {
	grpc::ServerContext context;
	grpc::ByteBuffer request;
	grpc::ServerAsyncResponseWriter<grpc::ByteBuffer> writer{ &context };
	bool answered = false;

	served(service *s, grpc::ServerCompletionQueue *cq)
	{
		s->RequestAsyncUnary(0, &context, &request, &writer, cq, cq,
				     this);
	}

	void answer(struct load *l)
	{
		grpc::Slice in = bytes_of(request);

		answered = true;
		writer.Finish(message(load_serve(l, in.begin(), in.size()),
				      l->reply_size),
			      grpc::Status::OK, this);
	}
};

void server(void *arg, int ready)
{
	struct peer *p = static_cast<struct peer *>(arg);
	grpc::ServerBuilder builder;
	service s;
	std::unique_ptr<grpc::ServerCompletionQueue> cq;
	std::unique_ptr<grpc::Server> running;

	builder.SetMaxReceiveMessageSize(-1);
	builder.AddListeningPort(p->address, server_credentials(&p->load));
	builder.RegisterService(&s);
	cq = builder.AddCompletionQueue();
	running = builder.BuildAndStart();
	if (!running)
		fail("server", p->address);
	for (size_t i = 0; i < p->load.depth; i++)
		new served(&s, cq.get());
	duo_ready(ready);
	for (;;) {
		served *r = static_cast<served *>(next_tag(&p->load, cq.get()));

		if (!r->answered) {
			new served(&s, cq.get());
			r->answer(&p->load);
		} else {
			delete r;
		}
	}
}

/* ---- the client ---- */

struct call {
	std::unique_ptr<grpc::ClientContext> context;
	std::unique_ptr<grpc::ClientAsyncResponseReader<grpc::ByteBuffer>>
		reader;
	grpc::ByteBuffer reply;
	grpc::Status status;

	void begin(struct load *l, size_t slot, grpc::GenericStub *stub,
		   grpc::CompletionQueue *cq)
	{
		reader.reset();
		context.reset(new grpc::ClientContext);
		reader = stub->PrepareUnaryCall(
			context.get(), method,
			message(load_request(l, slot), l->request_size), cq);
		reader->StartCall();
		reader->Finish(&reply, &status, this);
	}

	long end(struct load *l)
	{
		if (!status.ok())
			fail("call", status.error_message());
		grpc::Slice in = bytes_of(reply);
		return load_replied(l, in.begin(), in.size());
	}
};

void client(struct peer *p)
{
	grpc::ChannelArguments arguments;
	grpc::CompletionQueue cq;
	std::vector<call> calls(p->load.depth);

	arguments.SetMaxReceiveMessageSize(-1);
	if (p->load.keys) /* the certificate's name is no address */
		arguments.SetSslTargetNameOverride("a");
	grpc::GenericStub stub(grpc::CreateCustomChannel(
		p->address, channel_credentials(&p->load), arguments));

	for (size_t i = 0; i < calls.size(); i++)
		calls[i].begin(&p->load, i, &stub, &cq);
	while (p->load.under_way) {
		call *c = static_cast<call *>(next_tag(&p->load, &cq));
		long slot = c->end(&p->load);

		if (slot >= 0)
			c->begin(&p->load, static_cast<size_t>(slot), &stub,
				 &cq);
	}
}

} // namespace

int main(int argc, char **argv)
{
	struct peer p;

	peer_begin(&p, argc, argv, server);
	client(&p);
	load_end(&p.load);
	return 0;
}

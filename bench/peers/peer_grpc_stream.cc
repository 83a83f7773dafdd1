/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gRPC's C++ library: messages of one stream in both directions, which the
 * service sends back; beside bench/stream. bench/load.h tells the command line
 * and what is printed; there are no keys. A stream of gRPC has one write under
 * way at a time; what waits behind it is written without being flushed, except
 * for the last.
 */
#include "bench/peers/peer_grpc.h"

#include <deque>
#include <memory>

#include <grpcpp/generic/generic_stub.h>

namespace
{

const char method[] = "/bench.Load/Stream";

enum event { OPENED = 1, READ, WRITTEN };

void *tag(event e)
{
	return reinterpret_cast<void *>(e);
}

event next(struct load *l, grpc::CompletionQueue *cq)
{
	return static_cast<event>(reinterpret_cast<size_t>(next_tag(l, cq)));
}

/* Messages that wait to be written to @stream, which both sides have. */
template <class Stream> struct writer {
	Stream &stream;
	size_t size;
	std::deque<unsigned char *> waiting;
	bool busy = false;

	writer(Stream &s, size_t n) : stream(s), size(n)
	{
	}

	void go()
	{
		grpc::WriteOptions options;
		unsigned char *data;

		if (busy || waiting.empty())
			return;
		data = waiting.front();
		waiting.pop_front();
		if (!waiting.empty())
			options.set_buffer_hint();
		busy = true;
		stream.Write(message(data, size), options, tag(WRITTEN));
	}

	void put(unsigned char *data)
	{
		waiting.push_back(data);
		go();
	}

	void written()
	{
		busy = false;
		go();
	}
};

/* ---- the server ---- */

class service : public grpc::Service
{
      public:
	service()
	{
		AddMethod(new grpc::internal::RpcServiceMethod(
			method, grpc::internal::RpcMethod::BIDI_STREAMING,
			nullptr));
		MarkMethodRaw(0);
	}
	using grpc::Service::RequestAsyncBidiStreaming;
};

using server_stream =
	grpc::ServerAsyncReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer>;

void serve(struct load *l, server_stream &stream, grpc::CompletionQueue *cq)
{
	writer<server_stream> out(stream, l->reply_size);
	grpc::ByteBuffer in;

	stream.Read(&in, tag(READ));
	for (;;) {
		if (next(l, cq) == WRITTEN) {
			out.written();
			continue;
		}
		grpc::Slice bytes = bytes_of(in);

		out.put(load_serve(l, bytes.begin(), bytes.size()));
		stream.Read(&in, tag(READ));
	}
}

void server(void *arg, int ready)
{
	struct peer *p = static_cast<struct peer *>(arg);
	grpc::ServerBuilder builder;
	service s;
	grpc::ServerContext context;
	server_stream stream(&context);
	std::unique_ptr<grpc::ServerCompletionQueue> cq;
	std::unique_ptr<grpc::Server> running;

	builder.AddListeningPort(p->address,
				 grpc::InsecureServerCredentials());
	builder.RegisterService(&s);
	cq = builder.AddCompletionQueue();
	running = builder.BuildAndStart();
	if (!running)
		fail("server", p->address);
	s.RequestAsyncBidiStreaming(0, &context, &stream, cq.get(), cq.get(),
				    tag(OPENED));
	duo_ready(ready);
	next(&p->load, cq.get());
	serve(&p->load, stream, cq.get());
}

/* ---- the client ---- */

void client(struct peer *p)
{
	struct load *l = &p->load;
	grpc::CompletionQueue cq;
	grpc::ClientContext context;
	grpc::GenericStub stub(grpc::CreateChannel(
		p->address, grpc::InsecureChannelCredentials()));
	auto stream = stub.PrepareCall(&context, method, &cq);
	writer<grpc::GenericClientAsyncReaderWriter> out(*stream,
							 l->request_size);
	grpc::ByteBuffer in;

	stream->StartCall(tag(OPENED));
	next(l, &cq);
	for (size_t i = 0; i < l->depth; i++)
		out.put(load_request(l, i));
	stream->Read(&in, tag(READ));
	while (l->under_way) {
		if (next(l, &cq) == WRITTEN) {
			out.written();
			continue;
		}
		grpc::Slice bytes = bytes_of(in);
		long slot = load_replied(l, bytes.begin(), bytes.size());

		if (slot >= 0)
			out.put(load_request(l, static_cast<size_t>(slot)));
		if (l->under_way)
			stream->Read(&in, tag(READ));
	}
	load_end(l);
	std::fflush(stdout);
	std::_Exit(0); /* what is under way is not waited for */
}

} // namespace

int main(int argc, char **argv)
{
	struct peer p;

	peer_begin(&p, argc, argv, server);
	client(&p);
}

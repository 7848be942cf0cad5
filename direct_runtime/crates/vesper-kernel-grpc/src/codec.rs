//! The codec of the kernel: protobuf, with buffers as small as its messages.

use std::marker::PhantomData;

use prost::Message;
use tonic::codec::{BufferSettings, Codec};
use tonic_prost::{ProstCodec, ProstDecoder, ProstEncoder};

/// Bytes of a buffer at first: most messages fit. Those of tonic have 8 KiB, twice an RPC.
const BUFFER_BYTES: usize = 512;
/// Bytes of encoded messages of a stream that are sent together.
const TOGETHER_BYTES: usize = 32 << 10;

#[derive(Debug)]
pub(crate) struct KernelCodec<Sent, Received>(PhantomData<(Sent, Received)>);

impl<Sent, Received> Default for KernelCodec<Sent, Received> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<Sent, Received> Codec for KernelCodec<Sent, Received>
where
    Sent: Message + Send + 'static,
    Received: Message + Default + Send + 'static,
{
    type Encode = Sent;
    type Decode = Received;
    type Encoder = ProstEncoder<Sent>;
    type Decoder = ProstDecoder<Received>;

    fn encoder(&mut self) -> Self::Encoder {
        ProstCodec::<Sent, Received>::raw_encoder(BufferSettings::new(BUFFER_BYTES, TOGETHER_BYTES))
    }

    fn decoder(&mut self) -> Self::Decoder {
        ProstCodec::<Sent, Received>::raw_decoder(BufferSettings::new(BUFFER_BYTES, TOGETHER_BYTES))
    }
}

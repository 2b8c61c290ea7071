/// What the container has to know of a track of sound before its first packet.
struct SoundFormat {
    /// Samples a second.
    var rate: Int
    var channels: Int
    /// Sample frames in a packet.
    var packetFrames: Int
    /// Sample frames at the begin of what a decoder makes that are none of the sound.
    var priming: Int
    /// Bits a second.
    var bitRate: Int
    /// The codec's own description of itself (ISO/IEC 14496-3, 1.6.2.1).
    var extradata: [UInt8]
}

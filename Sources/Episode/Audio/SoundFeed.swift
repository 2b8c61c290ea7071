package import Protocol
internal import Synchronization
package import Timing

/// The way of a microphone's blocks from its own writer to the writer of the video that they are to be heard in.
///
/// It holds half a minute; when the video's writer is slower than that, the oldest blocks go, and silence stands in
/// their place, since every block has its own time.
///
/// Concurrency: both ends on any thread; neither waits.
package final class SoundFeed: Sendable {
    struct Block: Sendable {
        /// Empty when only the stamp counts.
        var bytes: [UInt8]
        var frames: Int
        /// Of the first sample frame.
        var capture: Timestamp<HostTime>
        /// Whether it doesn't follow on the block before it.
        var isFresh: Bool
    }

    private struct State {
        var blocks: [Block] = []
        var bytes = 0
        var isFresh = true
        var dropped: Int64 = 0
    }

    /// The stream of the microphone.
    package let source: StreamID
    package let format: AudioFormat
    private let limit: Int
    private let state = Mutex(State())

    package init(source: StreamID, format: AudioFormat, seconds: Int = 30) {
        self.source = source
        self.format = format
        limit = max(1, format.rate * max(1, format.bytesPerFrame) * seconds)
    }

    /// Adds a block of whole sample frames.
    package func push(_ bytes: [UInt8], frames: Int, capture: Timestamp<HostTime>) {
        guard frames > 0, bytes.count >= frames * format.bytesPerFrame else { return }
        state.withLock { state in
            state.blocks.append(Block(bytes: bytes, frames: frames, capture: capture, isFresh: state.isFresh))
            state.bytes += bytes.count
            state.isFresh = false
            guard state.bytes > limit else { return }
            // A quarter at once, so that a stalled reader doesn't cost a shift of the array for each block.
            var (count, bytes) = (0, 0)
            while count < state.blocks.count - 1, bytes < limit / 4 {
                bytes += state.blocks[count].bytes.count
                state.dropped += Int64(state.blocks[count].frames)
                count += 1
            }
            state.blocks.removeFirst(count)
            state.blocks[0].isFresh = true
            state.bytes -= bytes
        }
    }

    /// A block before the take: its sound is not heard, its stamp tells how fast the card runs.
    package func observe(frames: Int, capture: Timestamp<HostTime>) {
        guard frames > 0 else { return }
        state.withLock { state in
            guard state.blocks.count < 4096 else { return }
            state.blocks.append(Block(bytes: [], frames: frames, capture: capture, isFresh: state.isFresh))
            state.isFresh = false
        }
    }

    /// The next block doesn't follow on the last one.
    package func interrupt() { state.withLock { $0.isFresh = true } }

    /// Sample frames that the reader didn't get.
    package var dropped: Int64 { state.withLock { $0.dropped } }

    func take() -> [Block] {
        state.withLock { state in
            defer { (state.blocks, state.bytes) = ([], 0) }
            return state.blocks
        }
    }
}

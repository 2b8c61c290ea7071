internal import CALSA
internal import Glibc
internal import Platform
package import Protocol
package import Timing

/// Where a card stands at an instant, as `snd_pcm_status` tells it.
package struct PCMStatus: Sendable, Hashable {
    package enum State: Sendable, Hashable { case idle, running, overrun, suspended, disconnected }

    package var state: State
    /// When the driver last read the card's position, CLOCK_MONOTONIC; zero when it doesn't say.
    package var stamp: Timestamp<HostTime>
    /// When the program asked.
    package var now: Timestamp<HostTime>
    /// Sample frames that can be read or written.
    package var available: Int
    /// Sample frames between the program and the converter.
    package var delay: Int
    /// How long the card has run at `stamp` by its own clock (audio_tstamp of the link); nil when it can't say.
    package var link: Interval?

    package init(
        state: State, stamp: Timestamp<HostTime>, now: Timestamp<HostTime>, available: Int, delay: Int,
        link: Interval? = nil
    ) {
        self.state = state
        self.stamp = stamp
        self.now = now
        self.available = available
        self.delay = delay
        self.link = link
    }
}

/// What a card and we agreed on.
package struct PCMShape: Sendable, Hashable {
    package var format: AudioFormat
    /// 24 bits come in four bytes, the highest one without meaning.
    package var isPadded: Bool
    package var periodFrames: Int
    package var bufferFrames: Int
    /// The position moves in steps of whole periods.
    package var isBatch: Bool
    /// Stamps are on CLOCK_MONOTONIC.
    package var isMonotonic: Bool

    package init(
        format: AudioFormat, isPadded: Bool, periodFrames: Int, bufferFrames: Int, isBatch: Bool, isMonotonic: Bool
    ) {
        self.format = format
        self.isPadded = isPadded
        self.periodFrames = periodFrames
        self.bufferFrames = bufferFrames
        self.isBatch = isBatch
        self.isMonotonic = isMonotonic
    }

    /// Bytes of one sample frame as the card has it.
    package var cardBytesPerFrame: Int { isPadded ? 4 * format.channels : format.bytesPerFrame }

    package var period: Interval { .seconds(Double(periodFrames) / Double(format.rate)) }
}

/// What is asked of a card.
package struct PCMWish: Sendable, Hashable {
    /// Best first.
    package var encodings: [AudioFormat.Encoding]
    package var rate: Int
    package var channels: Int
    package var period: Interval
    package var buffer: Interval

    package init(
        encodings: [AudioFormat.Encoding], rate: Int, channels: Int, period: Interval, buffer: Interval
    ) {
        self.encodings = encodings
        self.rate = rate
        self.channels = channels
        self.period = period
        self.buffer = buffer
    }
}

/// An open PCM of alsa-lib, without waiting except in `wait`.
///
/// Concurrency: owned and used by one thread, the device's event loop.
final class PCM: PCMPort {
    /// For the calls of the extensions, on the same thread.
    var pointer: OpaquePointer { handle }
    private let handle: OpaquePointer
    private let status: OpaquePointer
    private var isOpen = true
    /// The kind of audio_tstamp that the card has, of those that count the link's own clock from the start on.
    private var linkKind: UInt32?

    /// The corresponding C function is `snd_pcm_open`.
    init(name: String, _ direction: PCMDirection) throws(Errno) {
        calsa_quiet()
        var opened: OpaquePointer?
        let stream = direction == .capture ? SND_PCM_STREAM_CAPTURE : SND_PCM_STREAM_PLAYBACK
        try Self.check(snd_pcm_open(&opened, name, stream, Int32(SND_PCM_NONBLOCK)))
        var status: OpaquePointer?
        guard let opened, snd_pcm_status_malloc(&status) == 0, let status else {
            if let opened { snd_pcm_close(opened) }
            throw Errno(rawValue: ENOMEM)
        }
        handle = opened
        self.status = status
    }

    deinit {
        close()
        snd_pcm_status_free(status)
    }

    func close() {
        guard isOpen else { return }
        isOpen = false
        snd_pcm_close(handle)
    }

    // MARK: Streaming

    /// The handle of what isn't closed: a sound may still be on its way to a speaker that was closed meanwhile.
    private var live: OpaquePointer {
        get throws(Errno) {
            guard isOpen else { throw .noDevice }
            return handle
        }
    }

    func prepare() throws(Errno) { try Self.check(snd_pcm_prepare(live)) }
    func start() throws(Errno) { try Self.check(snd_pcm_start(live)) }
    func drop() { if isOpen { snd_pcm_drop(handle) } }

    func wait(milliseconds: Int32) throws(Errno) -> Bool {
        let handle = try live
        let result = snd_pcm_wait(handle, milliseconds)
        if result == -EINTR { return false }
        try Self.check(result)
        return result > 0
    }

    func ask() throws(Errno) -> PCMStatus {
        if let linkKind { calsa_ask_link(status, linkKind) }
        try Self.check(snd_pcm_status(live, status))
        let now = HostClock.now
        var stamp = snd_htimestamp_t()
        snd_pcm_status_get_htstamp(status, &stamp)
        let state: PCMStatus.State =
            switch snd_pcm_status_get_state(status) {
            case SND_PCM_STATE_RUNNING, SND_PCM_STATE_DRAINING: .running
            case SND_PCM_STATE_XRUN: .overrun
            case SND_PCM_STATE_SUSPENDED: .suspended
            case SND_PCM_STATE_DISCONNECTED: .disconnected
            default: .idle
            }
        var link: Interval?
        if linkKind != nil {
            let nanoseconds = calsa_link_ns(status)
            if nanoseconds > 0 { link = Interval(nanoseconds: nanoseconds) }
        }
        let host =
            Interval(nanoseconds: Int64(stamp.tv_sec)) * 1_000_000_000 + Interval(nanoseconds: Int64(stamp.tv_nsec))
        return PCMStatus(
            state: state, stamp: Timestamp(nanoseconds: host.nanoseconds), now: now,
            available: Int(clamping: snd_pcm_status_get_avail(status)),
            delay: snd_pcm_status_get_delay(status), link: link)
    }

    func read(frames: Int, _ shape: PCMShape) throws(Errno) -> [UInt8] {
        let size = shape.cardBytesPerFrame
        let handle = try live
        var result = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: frames * size) { buffer, filled in
            result = snd_pcm_readi(handle, buffer.baseAddress, UInt(frames))
            filled = max(0, min(result, frames)) * size
        }
        if result == -Int(EAGAIN) { return [] }
        try Self.check(Int32(clamping: min(result, 0)))
        return shape.isPadded ? PCMSamples.packed(bytes) : bytes
    }

    func write(_ bytes: ArraySlice<UInt8>, _ shape: PCMShape) throws(Errno) -> Int {
        let frames = bytes.count / shape.cardBytesPerFrame
        let handle = try live
        let result = bytes.withUnsafeBytes { snd_pcm_writei(handle, $0.baseAddress, UInt(frames)) }
        if result == -Int(EAGAIN) { return 0 }
        try Self.check(Int32(clamping: min(result, 0)))
        return result
    }

    // MARK: Negotiation

    func negotiate(_ wish: PCMWish) throws(Errno) -> PCMShape {
        var parameters: OpaquePointer?
        guard snd_pcm_hw_params_malloc(&parameters) == 0, let parameters else { throw Errno(rawValue: ENOMEM) }
        defer { snd_pcm_hw_params_free(parameters) }
        try Self.check(snd_pcm_hw_params_any(handle, parameters))
        try Self.check(snd_pcm_hw_params_set_access(handle, parameters, SND_PCM_ACCESS_RW_INTERLEAVED))
        let (encoding, isPadded) = try setEncoding(wish.encodings, parameters)
        var channels = UInt32(clamping: wish.channels)
        try Self.check(snd_pcm_hw_params_set_channels_near(handle, parameters, &channels))
        // Resampling by a plug-in would hide the card's own clock.
        snd_pcm_hw_params_set_rate_resample(handle, parameters, 0)
        var rate = UInt32(clamping: wish.rate)
        try Self.check(snd_pcm_hw_params_set_rate_near(handle, parameters, &rate, nil))
        guard rate > 0, channels > 0, channels <= 64 else { throw .invalidArgument }
        var buffer = UInt(Double(rate) * wish.buffer.seconds)
        try Self.check(snd_pcm_hw_params_set_buffer_size_near(handle, parameters, &buffer))
        var period = UInt(Double(rate) * wish.period.seconds)
        try Self.check(snd_pcm_hw_params_set_period_size_near(handle, parameters, &period, nil))
        try Self.check(snd_pcm_hw_params(handle, parameters))
        snd_pcm_hw_params_get_buffer_size(parameters, &buffer)
        snd_pcm_hw_params_get_period_size(parameters, &period, nil)
        guard period > 0, buffer >= period, buffer < 1 << 28 else { throw .invalidArgument }
        let isBatch = snd_pcm_hw_params_is_batch(parameters) == 1
        let kind = calsa_link_kind(parameters)
        linkKind = kind > 0 ? UInt32(kind) : nil
        let isMonotonic = try setSoftware(period: period, buffer: buffer)
        return PCMShape(
            format: AudioFormat(encoding: encoding, rate: Int(rate), channels: Int(channels)), isPadded: isPadded,
            periodFrames: Int(period), bufferFrames: Int(buffer), isBatch: isBatch, isMonotonic: isMonotonic)
    }

    private func setEncoding(
        _ encodings: [AudioFormat.Encoding], _ parameters: OpaquePointer
    ) throws(Errno) -> (AudioFormat.Encoding, isPadded: Bool) {
        for encoding in encodings {
            let formats: [(snd_pcm_format_t, Bool)] =
                switch encoding {
                case .s16: [(SND_PCM_FORMAT_S16_LE, false)]
                case .s24: [(SND_PCM_FORMAT_S24_3LE, false), (SND_PCM_FORMAT_S24_LE, true)]
                case .s32: [(SND_PCM_FORMAT_S32_LE, false)]
                case .f32: [(SND_PCM_FORMAT_FLOAT_LE, false)]
                }
            for (format, isPadded) in formats
            where snd_pcm_hw_params_set_format(handle, parameters, format) == 0 {
                return (encoding, isPadded)
            }
        }
        throw .invalidArgument
    }

    /// Stamps on, on CLOCK_MONOTONIC where the card can; never started by itself.
    private func setSoftware(period: UInt, buffer: UInt) throws(Errno) -> Bool {
        var parameters: OpaquePointer?
        guard snd_pcm_sw_params_malloc(&parameters) == 0, let parameters else { throw Errno(rawValue: ENOMEM) }
        defer { snd_pcm_sw_params_free(parameters) }
        try Self.check(snd_pcm_sw_params_current(handle, parameters))
        try Self.check(snd_pcm_sw_params_set_tstamp_mode(handle, parameters, SND_PCM_TSTAMP_ENABLE))
        let monotonic = snd_pcm_sw_params_set_tstamp_type(handle, parameters, SND_PCM_TSTAMP_TYPE_MONOTONIC) == 0
        try Self.check(snd_pcm_sw_params_set_avail_min(handle, parameters, period))
        var boundary: UInt = 0
        snd_pcm_sw_params_get_boundary(parameters, &boundary)
        try Self.check(snd_pcm_sw_params_set_start_threshold(handle, parameters, boundary))
        // Full (capture) or empty (playback) is an overrun, and is told.
        try Self.check(snd_pcm_sw_params_set_stop_threshold(handle, parameters, buffer))
        try Self.check(snd_pcm_sw_params(handle, parameters))
        return monotonic
    }

    /// alsa-lib answers negative errnos.
    static func check(_ result: Int32) throws(Errno) {
        if result < 0 { throw Errno(rawValue: result == .min ? EIO : -result) }
    }
}

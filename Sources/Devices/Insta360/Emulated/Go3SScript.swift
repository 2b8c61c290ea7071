package import Timing

/// What an emulated camera is, and what goes wrong with it.
package struct Go3SScript: Sendable {
    /// A fault; those with a number of times count down.
    package enum Fault: Sendable, Hashable {
        /// The answers to so many starts or stops are lost; they are done all the same.
        case startAnswerLost(Int), stopAnswerLost(Int)
        /// The stop's answer names no file.
        case noPath
        /// The link is gone for so many seconds, so many seconds after the start.
        case disconnect(after: Double, seconds: Double)
        /// So many starts are refused as busy.
        case busy(Int)
        /// What is answered about the permission, now and when a person was asked.
        case permission(CameraAuthorization, then: CameraAuthorization)
        /// The start is acknowledged, and nothing is recorded, so many times.
        case startsNothing(Int)
        /// The camera ends its recording by itself after so many seconds.
        case stopsItself(Double)
        /// The clip is cut into so many files.
        case segments(Int)
        /// The last part of the file was never written.
        case clipCut
        /// Each download breaks off after so many bytes.
        case downloadBreaks(Int)
    }

    package var name = "GO 3S EMU001"
    package var battery = 80
    /// The unit is the camera's own.
    package var free: UInt64 = 3000
    /// How much the camera's clock is ahead of UTC: of its date and of its zone.
    package var clockAhead = Interval.zero
    /// How much faster its sample clocks run.
    package var skewPPM = 0.0
    /// From the start's command to the first frame; the acknowledgement comes at `answerDelay`.
    package var startLatency = Interval.milliseconds(180)
    package var answerDelay = Interval.milliseconds(30)
    /// The sound ends so much before the stop, as with the real camera.
    package var earlyEnd = Interval.milliseconds(350)
    /// Whether it insists on its handshake.
    package var handshakes = true
    package var faults: [Fault] = []

    package init() {}

    /// "ack_lost", "no_uri", "disconnect=2..1", … as on the emulator's command line; nil when it is none.
    package static func fault(_ text: String) -> Fault? {
        let words = text.split(separator: "=", omittingEmptySubsequences: false).map(String.init)
        guard words.count <= 2, let word = words.first else { return nil }
        let value = words.count == 2 ? words[1] : ""
        let count = value.isEmpty ? 1 : Int(value) ?? -1
        guard count >= 0 || word == "disconnect" || word == "not_authorised" || word == "stops" else { return nil }
        switch word {
        case "ack_lost": return .startAnswerLost(count)
        case "stop_ack_lost": return .stopAnswerLost(count)
        case "no_uri": return value.isEmpty ? .noPath : nil
        case "busy": return .busy(count)
        case "starts_nothing": return .startsNothing(count)
        case "clip_cut": return value.isEmpty ? .clipCut : nil
        case "segments": return (2...20).contains(count) ? .segments(count) : nil
        case "download_breaks": return count > 0 ? .downloadBreaks(count) : nil
        case "stops": return Double(value).map { .stopsItself($0) }
        case "not_authorised":
            let answer = value.isEmpty ? CameraAuthorization.required : CameraAuthorization(rawValue: value)
            return answer.map { .permission($0, then: .timedOut) }
        case "disconnect":
            let parts = value.split(separator: ",").compactMap { Double($0) }
            return parts.count == 2 ? .disconnect(after: parts[0], seconds: parts[1]) : nil
        default: return nil
        }
    }

    package static let faultHelp = """

        Faults, for --fault:
          ack_lost[=N]          the answers to N starts are lost; it records all the same
          stop_ack_lost[=N]     the answers to N stops are lost
          no_uri                the stop's answer names no file
          busy[=N]              N starts are refused as busy
          starts_nothing[=N]    N starts are acknowledged and nothing is recorded
          not_authorised[=WORD] it refuses: required, rejected, timedOut, systemBusy, connectedByOtherDevice
          disconnect=A,S        the link is gone A seconds after the start, for S seconds
          stops=S               it ends its recording by itself after S seconds
          segments=N            the clip is cut into N files
          clip_cut              the end of the file was never written
          download_breaks=N     each download breaks off after N bytes

        """
}

internal import Platform
package import Protocol
package import Timing

/// One row of `clock_exchanges.jsonl`: an exchange with a host as it was measured, with nothing computed.
package struct ClockExchangeRow: Codable, Sendable, Hashable {
    package var host: String
    package var exchange: ClockExchange<RigTime, HostTime>

    package init(host: String, exchange: ClockExchange<RigTime, HostTime>) {
        self.host = host
        self.exchange = exchange
    }

    package init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        host = try container.decode(String.self, forKey: .host)
        exchange = ClockExchange(
            sent: try container.decode(Timestamp<RigTime>.self, forKey: .sent),
            arrived: try container.decode(Timestamp<HostTime>.self, forKey: .arrived),
            answered: try container.decode(Timestamp<HostTime>.self, forKey: .answered),
            received: try container.decode(Timestamp<RigTime>.self, forKey: .received),
            localDiscipline: try Self.reading(container, .rigSteering, .rigSteeringError, .rigIsSteered),
            remoteDiscipline: try Self.reading(container, .hostSteering, .hostSteeringError, .hostIsSteered))
    }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(host, forKey: .host)
        try container.encode(exchange.sent, forKey: .sent)
        try container.encode(exchange.arrived, forKey: .arrived)
        try container.encode(exchange.answered, forKey: .answered)
        try container.encode(exchange.received, forKey: .received)
        if let reading = exchange.localDiscipline {
            try container.encode(reading.difference, forKey: .rigSteering)
            try container.encode(reading.error, forKey: .rigSteeringError)
            try container.encode(reading.isSteered, forKey: .rigIsSteered)
        }
        if let reading = exchange.remoteDiscipline {
            try container.encode(reading.difference, forKey: .hostSteering)
            try container.encode(reading.error, forKey: .hostSteeringError)
            try container.encode(reading.isSteered, forKey: .hostIsSteered)
        }
    }

    private static func reading(
        _ container: KeyedDecodingContainer<CodingKeys>, _ difference: CodingKeys, _ error: CodingKeys,
        _ isSteered: CodingKeys
    ) throws -> DisciplineReading? {
        guard let found = try container.decodeIfPresent(Interval.self, forKey: difference) else { return nil }
        return DisciplineReading(
            difference: found, error: try container.decode(Interval.self, forKey: error),
            isSteered: try container.decode(Bool.self, forKey: isSteered))
    }

    private enum CodingKeys: String, CodingKey {
        case host = "host_id"
        case sent = "sent_rig_ns"
        case arrived = "arrived_host_ns"
        case answered = "answered_host_ns"
        case received = "received_rig_ns"
        /// CLOCK_MONOTONIC minus CLOCK_MONOTONIC_RAW.
        case rigSteering = "rig_monotonic_minus_raw_ns"
        case rigSteeringError = "rig_raw_error_ns"
        case rigIsSteered = "rig_steered"
        case hostSteering = "host_monotonic_minus_raw_ns"
        case hostSteeringError = "host_raw_error_ns"
        case hostIsSteered = "host_steered"
    }
}

/// `clock_exchanges.jsonl`: what was measured of the clocks in a take, from which `clock_sync.jsonl` is computed.
package enum ClockExchangeLog {
    package static let name = "clock_exchanges.jsonl"

    /// Something that was noticed of a host's clock, as a row between the exchanges.
    private struct EventRow: Codable {
        var host: String
        var event: HostManifest.Event

        private enum CodingKeys: String, CodingKey {
            case host = "host_id"
            case event
        }
    }

    /// Whole lines.
    package static func lines(
        _ exchanges: [ClockExchange<RigTime, HostTime>], events: [HostManifest.Event] = [], of host: HostID
    ) throws -> [UInt8] {
        var bytes: [UInt8] = []
        for exchange in exchanges {
            bytes += try JSONText.encode(ClockExchangeRow(host: host.rawValue, exchange: exchange)) + [0x0A]
        }
        for event in events { bytes += try JSONText.encode(EventRow(host: host.rawValue, event: event)) + [0x0A] }
        return bytes
    }

    /// What was noticed of each host's clock.
    package static func events(_ path: String) throws -> [String: [HostManifest.Event]] {
        var found: [String: [HostManifest.Event]] = [:]
        try LineReader.read(path) { line in
            guard !line.isTooLong, let row = try? JSONText.decode(EventRow.self, from: Array(line.bytes)) else {
                return
            }
            found[row.host, default: []].append(row.event)
        }
        return found
    }

    /// The exchanges of each host, each once; lines that are none are left out.
    package static func read(_ path: String) throws -> [String: [ClockExchange<RigTime, HostTime>]] {
        var found: [String: [ClockExchange<RigTime, HostTime>]] = [:]
        var seen: Set<ClockExchangeRow> = []
        try LineReader.read(path) { line in
            guard !line.isTooLong, let row = try? JSONText.decode(ClockExchangeRow.self, from: Array(line.bytes)),
                seen.insert(row).inserted
            else { return }
            found[row.host, default: []].append(row.exchange)
        }
        return found
    }
}

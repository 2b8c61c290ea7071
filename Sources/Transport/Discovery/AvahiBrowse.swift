internal import CAvahi
internal import Glibc
internal import Platform
internal import Timing

/// One sighting of a service: a name on one interface by one protocol.
struct Sighting: Hashable, Sendable {
    var interface: Int32
    var proto: Int32
    var name: String
    var type: String
    var domain: String
}

/// What a sighting turned out to be.
struct ResolvedSighting: Hashable, Sendable {
    /// Nil when Avahi gave an address that can't be used.
    var address: NetworkAddress?
    var text: [String]
    /// The service is on this very machine.
    var isLocal: Bool
}

/// A browser for one service type, with a resolver for each sighting that stays as long as the sighting does, so that a
/// changed record is seen too.
///
/// Concurrency: on the loop's thread only. `free()` comes before the last reference goes.
final class AvahiBrowse: @unchecked Sendable {
    enum Change {
        case resolved(Sighting, ResolvedSighting)
        case removed(Sighting)
        /// All that is known now has been told.
        case allForNow
        case failed(String)
    }

    /// What Avahi's resolver callback is given.
    fileprivate final class Resolver {
        let sighting: Sighting
        let isLocal: Bool
        unowned let browse: AvahiBrowse
        var pointer: OpaquePointer?

        init(_ sighting: Sighting, isLocal: Bool, browse: AvahiBrowse) {
            self.sighting = sighting
            self.isLocal = isLocal
            self.browse = browse
        }
    }

    /// More sightings are not looked at: someone floods the network.
    private static let limit = 4096

    private let loop: EventLoop
    private let client: OpaquePointer
    private let handler: (Change) -> Void
    private var browser: OpaquePointer?
    private var resolvers: [Sighting: Resolver] = [:]

    init?(client: OpaquePointer, type: String, loop: EventLoop, handler: @escaping (Change) -> Void) {
        self.client = client
        self.loop = loop
        self.handler = handler
        browser = avahi_service_browser_new(
            client, AvahiIfIndex(AVAHI_IF_UNSPEC), AvahiProtocol(AVAHI_PROTO_UNSPEC), type, nil,
            AvahiLookupFlags(rawValue: 0), serviceChanged, Unmanaged.passUnretained(self).toOpaque())
        if browser == nil { return nil }
    }

    func free() {
        for resolver in resolvers.values { free(resolver) }
        resolvers = [:]
        if let browser { avahi_service_browser_free(browser) }
        browser = nil
    }

    fileprivate func appeared(_ sighting: Sighting, isLocal: Bool) {
        guard resolvers[sighting] == nil else { return }
        guard resolvers.count < Self.limit else { return }
        let resolver = Resolver(sighting, isLocal: isLocal, browse: self)
        resolvers[sighting] = resolver
        start(resolver)
    }

    fileprivate func disappeared(_ sighting: Sighting) {
        guard let resolver = resolvers.removeValue(forKey: sighting) else { return }
        free(resolver)
        handler(.removed(sighting))
    }

    fileprivate func settled() { handler(.allForNow) }

    fileprivate func failed() { handler(.failed(AvahiText.of(avahi_client_errno(client)))) }

    fileprivate func resolved(_ resolver: Resolver, _ found: ResolvedSighting) {
        guard resolvers[resolver.sighting] === resolver else { return }
        handler(.resolved(resolver.sighting, found))
    }

    /// Asks again after a second, for as long as the service is announced.
    fileprivate func unresolved(_ resolver: Resolver) {
        let sighting = resolver.sighting
        loop.schedule(at: HostClock.now + .milliseconds(1000)) { [weak self] in
            guard let self, let resolver = resolvers[sighting] else { return }
            free(resolver)
            start(resolver)
        }
    }

    private func start(_ resolver: Resolver) {
        guard browser != nil else { return }
        let sighting = resolver.sighting
        // The address of the protocol by which it was seen: the other one has a sighting of its own.
        resolver.pointer = avahi_service_resolver_new(
            client, sighting.interface, sighting.proto, sighting.name, sighting.type, sighting.domain, sighting.proto,
            AvahiLookupFlags(rawValue: 0), serviceResolved, Unmanaged.passUnretained(resolver).toOpaque())
        if resolver.pointer == nil { unresolved(resolver) }
    }

    private func free(_ resolver: Resolver) {
        if let pointer = resolver.pointer { avahi_service_resolver_free(pointer) }
        resolver.pointer = nil
    }
}

private func serviceChanged(
    _ browser: OpaquePointer?, _ interface: AvahiIfIndex, _ proto: AvahiProtocol, _ event: AvahiBrowserEvent,
    _ name: UnsafePointer<CChar>?, _ type: UnsafePointer<CChar>?, _ domain: UnsafePointer<CChar>?,
    _ flags: AvahiLookupResultFlags, _ userdata: UnsafeMutableRawPointer?
) {
    guard let userdata else { return }
    let browse = Unmanaged<AvahiBrowse>.fromOpaque(userdata).takeUnretainedValue()
    switch event {
    case AVAHI_BROWSER_NEW, AVAHI_BROWSER_REMOVE:
        guard let name, let type, let domain else { return }
        let sighting = Sighting(
            interface: interface, proto: proto, name: String(cString: name), type: String(cString: type),
            domain: String(cString: domain))
        let local = AVAHI_LOOKUP_RESULT_LOCAL.rawValue | AVAHI_LOOKUP_RESULT_OUR_OWN.rawValue
        if event == AVAHI_BROWSER_NEW {
            browse.appeared(sighting, isLocal: flags.rawValue & local != 0)
        } else {
            browse.disappeared(sighting)
        }
    case AVAHI_BROWSER_ALL_FOR_NOW: browse.settled()
    case AVAHI_BROWSER_FAILURE: browse.failed()
    default: break
    }
}

private func serviceResolved(
    _ pointer: OpaquePointer?, _ interface: AvahiIfIndex, _ proto: AvahiProtocol, _ event: AvahiResolverEvent,
    _ name: UnsafePointer<CChar>?, _ type: UnsafePointer<CChar>?, _ domain: UnsafePointer<CChar>?,
    _ hostName: UnsafePointer<CChar>?, _ address: UnsafePointer<AvahiAddress>?, _ port: UInt16,
    _ text: UnsafeMutablePointer<AvahiStringList>?, _ flags: AvahiLookupResultFlags,
    _ userdata: UnsafeMutableRawPointer?
) {
    guard let userdata else { return }
    let resolver = Unmanaged<AvahiBrowse.Resolver>.fromOpaque(userdata).takeUnretainedValue()
    guard event == AVAHI_RESOLVER_FOUND, let address else { return resolver.browse.unresolved(resolver) }
    var buffer = [CChar](repeating: 0, count: Int(AVAHI_ADDRESS_STR_MAX))
    avahi_address_snprint(&buffer, buffer.count, address)
    let literal = String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    var strings: [String] = []
    var next = text
    while let entry = next, strings.count < 64 {
        let size = avahi_string_list_get_size(entry)
        if let bytes = avahi_string_list_get_text(entry) {
            strings.append(String(decoding: UnsafeBufferPointer(start: bytes, count: size), as: UTF8.self))
        }
        next = avahi_string_list_get_next(entry)
    }
    let name = interface > 0 ? NetworkInterface.name(index: UInt32(interface)) : nil
    resolver.browse.resolved(
        resolver,
        ResolvedSighting(
            address: NetworkAddress(literal, interface: name), text: strings, isLocal: resolver.isLocal))
}

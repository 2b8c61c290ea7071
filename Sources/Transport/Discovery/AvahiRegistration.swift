internal import CAvahi
internal import Glibc

/// One service registered with avahi-daemon (an entry group).
///
/// Concurrency: on the loop's thread only. `free()` comes before the last reference goes.
final class AvahiRegistration {
    enum Change {
        case established
        case collision
        case failed(String)
    }

    /// What is registered.
    struct Service: Hashable {
        var name: String
        var type: String
        var port: UInt16
        var text: [String]
    }

    /// What Avahi said to a request.
    enum Answer {
        case accepted
        /// The name is taken on this very machine.
        case collision
        case failed(String)
    }

    private let handler: (Change) -> Void
    private var group: OpaquePointer?
    private var registered: Service?

    init?(client: OpaquePointer, handler: @escaping (Change) -> Void) {
        self.handler = handler
        group = avahi_entry_group_new(client, groupChanged, Unmanaged.passUnretained(self).toOpaque())
        if group == nil { return nil }
    }

    /// Registers a service, or changes it; only the text record changes without the service going away for a moment.
    func register(_ service: Service) -> Answer {
        guard let group else { return .failed("the connection is closed") }
        let list = Self.list(service.text)
        defer { avahi_string_list_free(list) }
        let (anywhere, any) = (AvahiIfIndex(AVAHI_IF_UNSPEC), AvahiProtocol(AVAHI_PROTO_UNSPEC))
        let none = AvahiPublishFlags(rawValue: 0)
        if let old = registered, old.name == service.name, old.port == service.port, old.type == service.type {
            guard old.text != service.text else { return .accepted }
            let code = avahi_entry_group_update_service_txt_strlst(
                group, anywhere, any, none, service.name, service.type, nil, list)
            if code == 0 { registered = service }
            return Self.answer(code)
        }
        registered = nil
        avahi_entry_group_reset(group)
        var code = avahi_entry_group_add_service_strlst(
            group, anywhere, any, none, service.name, service.type, nil, nil, service.port, list)
        if code == 0 { code = avahi_entry_group_commit(group) }
        if code == 0 { registered = service }
        return Self.answer(code)
    }

    /// Withdraws the service, and keeps the group.
    func reset() {
        registered = nil
        if let group { avahi_entry_group_reset(group) }
    }

    func free() {
        if let group { avahi_entry_group_free(group) }
        group = nil
        registered = nil
    }

    fileprivate func changed(_ group: OpaquePointer, to state: AvahiEntryGroupState) {
        switch state {
        case AVAHI_ENTRY_GROUP_ESTABLISHED: handler(.established)
        case AVAHI_ENTRY_GROUP_COLLISION:
            registered = nil
            handler(.collision)
        case AVAHI_ENTRY_GROUP_FAILURE:
            registered = nil
            handler(.failed(AvahiText.of(avahi_client_errno(avahi_entry_group_get_client(group)))))
        default: break
        }
    }

    /// A name like the given one that may be free: "cam" → "cam #2".
    static func alternative(to name: String) -> String {
        guard let text = avahi_alternative_service_name(name) else { return name }
        defer { avahi_free(text) }
        return String(cString: text)
    }

    private static func answer(_ code: Int32) -> Answer {
        switch code {
        case 0...: .accepted
        case Int32(AVAHI_ERR_COLLISION): .collision
        default: .failed(AvahiText.of(code))
        }
    }

    private static func list(_ strings: [String]) -> UnsafeMutablePointer<AvahiStringList>? {
        // Avahi prepends.
        strings.reversed().reduce(nil) { list, string in
            let bytes = Array(string.utf8)
            return avahi_string_list_add_arbitrary(list, bytes, bytes.count)
        }
    }
}

private func groupChanged(
    _ group: OpaquePointer?, _ state: AvahiEntryGroupState, _ userdata: UnsafeMutableRawPointer?
) {
    guard let group, let userdata else { return }
    Unmanaged<AvahiRegistration>.fromOpaque(userdata).takeUnretainedValue().changed(group, to: state)
}

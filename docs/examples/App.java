// SPDX-License-Identifier: BSD-2-Clause
// App.java: a small shop that never sleeps; for docs/RUNTIMES.md.
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Collectors;

public class App {
    record Item(String name, int price) {}

    static class Order {
        final int id;
        final List<Item> items = new ArrayList<>();

        Order(int id) {
            this.id = id;
            for (int i = 0; i < 20; i++)
                items.add(new Item("item " + i, (id * i) % 97));
        }

        int total() {
            int sum = 0;
            for (Item item : items)
                sum += item.price();
            return sum;
        }
    }

    static List<Order> makeOrders(int count) {
        List<Order> orders = new ArrayList<>();
        for (int id = 0; id < count; id++)
            orders.add(new Order(id));
        return orders;
    }

    static void sortOrders(List<Order> orders) {
        orders.sort(Comparator.comparingInt(Order::total));
    }

    static String renderPage(List<Order> orders) {
        return orders.stream()
            .map(order -> "<li>" + order.id + ": " + order.total() + "</li>")
            .collect(Collectors.joining("\n"));
    }

    static int handleRequest() {
        List<Order> orders = makeOrders(300);
        sortOrders(orders);
        return renderPage(orders).length();
    }

    public static void main(String[] args) {
        int length = 0;
        while (length >= 0)
            length = handleRequest();
    }
}
